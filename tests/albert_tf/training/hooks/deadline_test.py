"""A run that is given minutes: where its decay begins, and that nothing else depends on a clock."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.training import (
    LoopSettings,
    OptimizerSettings,
    RunSettings,
    run_experiment,
    running,
)
from albert_tf.training.hooks.base import Stop
from albert_tf.training.hooks.deadline import Deadline, share_of_decay, with_chosen_end

pytestmark = pytest.mark.usefixtures("eager")


class Clock:
    """Seconds that pass only when a test says so."""

    now = 1000.0

    def __call__(self):
        return self.now


class Started:
    """A deadline whose minutes have begun to count, with the stops that it is told of."""

    def __init__(self, folder, clock, minutes=10, num_warmup_steps=0, share=0.2, limit=10_000):
        optimizer = OptimizerSettings("lamb", 0.1, num_warmup_steps, schedule="wsd")
        optimizer = dataclasses.replace(optimizer, decay_share=share)
        loop = LoopSettings(limit, max_minutes=minutes)
        self.settings, self.notes = RunSettings(str(folder), optimizer, loop), []
        self.deadline = Deadline(self.settings, clock)
        self.deadline.start(SimpleNamespace(reporter=SimpleNamespace(note=self.notes.append)))

    def ends_at(self, step, choose=False):
        stop = Stop(step, None, 0.0, is_early=False)
        self.deadline.after(stop)
        assert stop.needs_checkpoint is (stop.end is not None)
        if choose:
            stop.end()
        return stop.end is not None


@pytest.fixture
def clock():
    return Clock()


def test_the_end_is_chosen_from_the_speed(tmp_path, clock):
    """10 minutes, a fifth of them decay; half a step a second once the first report is made."""
    run = Started(tmp_path, clock)
    clock.now += 60  # Compiling.
    assert not run.ends_at(10)
    clock.now += 419
    assert not run.ends_at(220)
    clock.now += 1
    assert run.ends_at(220, choose=True) and "ends with step 280" in run.notes[0]
    record = json.loads((tmp_path / "minutes.json").read_text())
    del record["sha256"]
    assert record == {
        "max_minutes": 10,
        "seconds": 480.0,
        "decay_start": 220,
        "num_train_steps": 280,
    }
    chosen = with_chosen_end(run.settings)
    assert (chosen.loop.num_train_steps, chosen.loop.max_minutes) == (280, 0)
    assert chosen.optimizer.decay_start(280) == 220 and chosen.flags["max_minutes"] == 10
    assert with_chosen_end(chosen) == chosen
    with pytest.raises(UserError, match="--max_minutes=9: .* given 10 minutes.*end at step 280"):
        Started(tmp_path, clock, minutes=9)
    longer = Started(tmp_path, clock, minutes=20)
    assert with_chosen_end(longer.settings) == longer.settings
    longer.ends_at(230)
    clock.now += 479
    assert not longer.ends_at(300)
    clock.now += 1
    assert longer.ends_at(300)


def test_time_of_earlier_starts_counts_up_to_their_last_checkpoint(tmp_path, clock):
    first = Started(tmp_path, clock)
    clock.now += 400
    first.deadline.record()
    clock.now += 70  # Then it is killed.
    second = Started(tmp_path, clock)
    assert not second.ends_at(5)
    clock.now += 79
    assert not second.ends_at(6)
    clock.now += 1
    assert second.ends_at(6)


@pytest.mark.parametrize(
    ("seconds", "step", "limit", "last"),
    [
        (100, 24, 50, 25),  # More than there are: the decay has a step.
        (100, 24, 24 * 2 + 1, 25),
        (30, 49, 100, 97),  # By the speed.
    ],
)
def test_an_end_has_a_step_of_decay(tmp_path, clock, seconds, step, limit, last):
    run = Started(tmp_path, clock, minutes=1, share=0.5, limit=limit)
    run.ends_at(1)
    clock.now += seconds
    assert run.ends_at(step, choose=True)
    assert with_chosen_end(run.settings).loop.num_train_steps == last


@pytest.mark.parametrize("text", ["{", '{"max_minutes": 1, "seconds": "2"}'])
def test_a_damaged_record(tmp_path, clock, text):
    (tmp_path / "minutes.json").write_text(text)
    with pytest.raises(UserError, match=r"minutes.json is damaged.*Delete it|seconds should be a"):
        Started(tmp_path, clock)


def test_the_share_of_an_end_gives_its_start():
    for start in range(1, 60):
        share = share_of_decay(start, 77)
        settings = OptimizerSettings("adamw", 0.1, schedule="wsd", decay_share=share)
        assert settings.decay_start(77) == start


@pytest.fixture
def make_experiment(tiny_config, new_experiment):
    """(folder, decay_share, settings of the loop, batches=) -> an experiment with dropout."""
    config = tiny_config.replace(hidden_dropout_prob=0.1)

    def make(folder, decay_share=0.5, batches=None, **loop):
        tf.keras.utils.set_random_seed(3)
        optimizer = OptimizerSettings("lamb", 0.02, 1, schedule="wsd", decay_share=decay_share)
        loop = LoopSettings(**{"steps_per_loop": 1, "checkpoint_steps": 4, **loop})
        data = {"batches": batches} if batches else {}
        return new_experiment(config, folder, optimizer, loop, **data)

    return make


def weights(described):
    run_experiment(described)
    return [variable.numpy() for variable in described.objective.model.variables]


def test_a_run_by_the_clock_equals_one_of_as_many_steps(
    make_experiment, pretraining_data, tmp_path, monkeypatch, capsys
):
    """A second passes with every call of the clock, so that the runs are the same anywhere; one is
    killed in its decay, resumed, and then given more minutes.
    """
    clock = Clock()

    def tick():
        clock.now += 1
        return clock.now

    monkeypatch.setattr(running, "Deadline", lambda settings: Deadline(settings, tick))

    def killed_at(last):
        return lambda start_step: pretraining_data(start_step).take(last - start_step)

    by_clock = {"num_train_steps": 100, "max_minutes": 0.12, "decay_share": 0.7}
    record = tmp_path / "run" / "minutes.json"
    interrupted = make_experiment("run", batches=killed_at(3), **by_clock)
    with pytest.raises(StopIteration):  # The data end.
        run_experiment(interrupted)
    ending = json.loads(record.read_text())
    start, end = ending["decay_start"], ending["num_train_steps"]
    assert 1 < start < 3 < end < 100  # It was killed in its decay.
    assert f"from step {start} on, and the run ends with step {end}" in capsys.readouterr().out
    resumed = weights(make_experiment("run", **by_clock))
    metadata = json.loads((tmp_path / "run" / "last" / "model.json").read_text())
    assert metadata["num_train_steps"] == end and json.loads(record.read_text()) == ending

    share = share_of_decay(start, end)
    by_steps = weights(make_experiment("steps", share, num_train_steps=end))
    for left, right in zip(by_steps, resumed, strict=True):
        np.testing.assert_array_equal(left, right)

    capsys.readouterr()
    run_experiment(make_experiment("run", **{**by_clock, "max_minutes": 0.24}))
    assert f"resuming from step {start}, before the former decay" in capsys.readouterr().out
    longer = json.loads(record.read_text())
    assert longer["decay_start"] > start and longer["max_minutes"] == 0.24


def test_a_run_of_fewer_steps_than_the_minutes_allow(make_experiment, tmp_path):
    run_experiment(make_experiment("short", num_train_steps=4, max_minutes=60))
    record = json.loads((tmp_path / "short" / "minutes.json").read_text())
    assert record["num_train_steps"] is None and record["seconds"] >= 0


def test_minutes_need_a_rate_that_waits(make_experiment):
    settings = make_experiment("refused", num_train_steps=4).settings
    loop = dataclasses.replace(settings.loop, max_minutes=1)
    optimizer = dataclasses.replace(settings.optimizer, schedule="polynomial")
    with pytest.raises(
        UserError, match="--max_minutes=1 does not work with --schedule=polynomial.*wsd"
    ):
        dataclasses.replace(settings, loop=loop, optimizer=optimizer)


def test_a_warm_up_that_the_minutes_do_not_reach(tmp_path, clock):
    """10 steps a second: the decay of 10 minutes would begin at step 4,800."""
    short, long = (Started(tmp_path, clock, num_warmup_steps=n) for n in (4700, 4900))
    assert not short.ends_at(0) and not long.ends_at(0)
    clock.now += 10
    assert not short.ends_at(100)
    with pytest.raises(UserError, match="step 4800 on, .* --num_warmup_steps=4900"):
        long.ends_at(100)
    clock.now += 480  # The machine has become slow: the warm-up is made first.
    assert not short.ends_at(4600) and short.ends_at(4700)
    assert not list(tmp_path.iterdir())


def test_a_chosen_end_beyond_the_limit(make_experiment, tmp_path):
    record = {"max_minutes": 5, "seconds": 1.0, "decay_start": 8, "num_train_steps": 10}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "minutes.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match="--num_train_steps=9: .* fixed its end at step 10"):
        run_experiment(make_experiment("run", num_train_steps=9, max_minutes=5))
