"""A run that is given minutes: where its decay begins, and that nothing else depends on a clock."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.models import AlbertPretrainer
from albert_tf.models.objectives import PretrainingObjective
from albert_tf.training import (
    Experiment,
    LoopSettings,
    ModelFolders,
    OptimizerSettings,
    RunSettings,
    TrainingData,
    run_experiment,
)
from albert_tf.training.hooks.deadline import Deadline, Ending

pytestmark = pytest.mark.usefixtures("eager")


class Clock:
    """Seconds that pass only when a test says so."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_the_end_is_chosen_from_the_speed(tmp_path, clock):
    """10 minutes, a fifth of them decay; half a step a second once the first report is made."""
    found = Deadline(str(tmp_path), 10, 0.2, clock=clock)
    clock.now += 500  # The model is made before the training.
    found.start()
    clock.now += 60  # Compiling.
    assert not found.is_reached(10)
    clock.now += 419
    assert not found.is_reached(220)
    clock.now += 1
    assert found.is_reached(220)
    assert found.choose_ending(220, 10_000) == Ending(220, 280)
    record = json.loads((tmp_path / "minutes.json").read_text())
    del record["sha256"]
    assert record == {
        "max_minutes": 10,
        "seconds": 480.0,
        "decay_start": 220,
        "num_train_steps": 280,
    }
    again = Deadline(str(tmp_path), 10, 0.2, clock=clock)
    assert again.ending == Ending(220, 280)
    with pytest.raises(UserError, match="--max_minutes=9: .* given 10 minutes.*fixed at step 280"):
        Deadline(str(tmp_path), 9, 0.2, clock=clock)
    longer = Deadline(str(tmp_path), 20, 0.2, clock=clock)
    assert longer.ending is None
    longer.start()
    longer.is_reached(230)
    clock.now += 479
    assert not longer.is_reached(300)
    clock.now += 1
    assert longer.is_reached(300)


def test_time_of_earlier_starts_counts_up_to_their_last_checkpoint(tmp_path, clock):
    first = Deadline(str(tmp_path), 10, 0.2, clock=clock)
    first.start()
    clock.now += 400
    first.record()
    clock.now += 70  # Then it is killed.
    second = Deadline(str(tmp_path), 10, 0.2, clock=clock)
    second.start()
    assert not second.is_reached(5)
    clock.now += 79
    assert not second.is_reached(6)
    clock.now += 1
    assert second.is_reached(6)


def test_an_end_has_a_step_of_decay_and_no_more_steps_than_asked_for(tmp_path, clock):
    found = Deadline(str(tmp_path), 1, 0.5, clock=clock)
    found.start()
    found.is_reached(1)
    clock.now += 100
    assert found.choose_ending(2, 50) == Ending(2, 3)
    clock.now = 1000.0 + 30
    assert found.choose_ending(40, 50) == Ending(40, 50)


def test_a_damaged_record(tmp_path):
    (tmp_path / "minutes.json").write_text("{")
    with pytest.raises(UserError, match=r"minutes.json is damaged.*Delete it"):
        Deadline(str(tmp_path), 1, 0.5)


@pytest.mark.parametrize("decay_start", range(1, 60))
def test_the_share_of_an_end_gives_its_start(decay_start):
    ending = Ending(decay_start, 77)
    settings = OptimizerSettings("adamw", 0.1, schedule="wsd", decay_share=ending.decay_share)
    assert settings.decay_start(77) == decay_start


@pytest.fixture
def make_experiment(tiny_config, pretraining_data, tmp_path):
    """(folder, settings of the loop, batches=) -> an experiment on made-up batches."""
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("[PAD]\n")
    config = tiny_config.replace(hidden_dropout_prob=0.1)

    def make(folder, decay_share=0.5, batches=pretraining_data, **loop):
        tf.keras.utils.set_random_seed(3)
        optimizer = OptimizerSettings("lamb", 0.02, 2, schedule="wsd", decay_share=decay_share)
        loop = LoopSettings(**{"steps_per_loop": 2, "checkpoint_steps": 4, **loop})
        data = TrainingData(
            name="made-up batches",
            batches=batches,
            batch_size=8,
            seed=3,
            num_examples=None,
            max_seq_length=12,
            vocab_size=config.vocab_size,
            must_not_change={},
        )
        return Experiment(
            title="A test",
            objective=PretrainingObjective(AlbertPretrainer(config)),
            data=data,
            settings=RunSettings(str(tmp_path / folder), optimizer, loop),
            models=ModelFolders("best", "last", "loss", False, {}, str(vocabulary), {}),
            flops_per_token=0.0,
        )

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

    monkeypatch.setattr(
        "albert_tf.training.hooks.deadline.Deadline", lambda *args: Deadline(*args, clock=tick)
    )

    def killed_at(last):
        return lambda start_step: pretraining_data(start_step).take(last - start_step)

    by_clock = {"num_train_steps": 100, "max_minutes": 0.25}
    record = tmp_path / "run" / "minutes.json"
    interrupted = make_experiment("run", batches=killed_at(11), **by_clock)
    with pytest.raises(StopIteration):  # The data end.
        run_experiment(interrupted)
    ending = json.loads(record.read_text())
    start, end = ending["decay_start"], ending["num_train_steps"]
    assert 2 < start < 11 < end < 100  # It was killed in its decay.
    assert f"from step {start} on, and the run ends with step {end}" in capsys.readouterr().out
    resumed = weights(make_experiment("run", **by_clock))
    metadata = json.loads((tmp_path / "run" / "last" / "model.json").read_text())
    assert metadata["num_train_steps"] == end and json.loads(record.read_text()) == ending

    share = Ending(start, end).decay_share
    by_steps = weights(make_experiment("steps", share, num_train_steps=end))
    for left, right in zip(by_steps, resumed, strict=True):
        np.testing.assert_array_equal(left, right)

    capsys.readouterr()
    run_experiment(make_experiment("run", **{**by_clock, "max_minutes": 0.5}))
    assert f"going on from step {start}, before the former decay" in capsys.readouterr().out
    longer = json.loads(record.read_text())
    assert longer["decay_start"] > start and longer["max_minutes"] == 0.5


def test_a_run_of_fewer_steps_than_the_minutes_allow(make_experiment, tmp_path):
    run_experiment(make_experiment("short", num_train_steps=4, max_minutes=60))
    record = json.loads((tmp_path / "short" / "minutes.json").read_text())
    assert record["num_train_steps"] is None and record["seconds"] >= 0


def test_minutes_need_a_rate_that_waits(make_experiment):
    settings = make_experiment("refused", num_train_steps=4).settings
    loop = dataclasses.replace(settings.loop, max_minutes=1)
    optimizer = dataclasses.replace(settings.optimizer, schedule="polynomial")
    with pytest.raises(UserError, match="--max_minutes=1 with --schedule=polynomial.*wsd"):
        dataclasses.replace(settings, loop=loop, optimizer=optimizer)


def test_a_warm_up_that_the_minutes_do_not_reach(tmp_path, clock):
    """10 steps a second: the decay of 10 minutes would begin at step 4,800."""
    for num_warmup_steps in (4700, 4900):
        found = Deadline(str(tmp_path), 10, 0.2, num_warmup_steps, clock)
        found.start()
        assert not found.is_reached(0)
        clock.now += 10
        if num_warmup_steps == 4900:
            with pytest.raises(UserError, match="step 4800 on, .* --num_warmup_steps=4900"):
                found.is_reached(100)
            continue
        assert not found.is_reached(100)
        clock.now += 480  # The machine has become slow: the warm-up is made first.
        assert not found.is_reached(4600) and found.is_reached(4700)
    assert not list(tmp_path.iterdir())


def test_a_chosen_end_beyond_the_limit(make_experiment, tmp_path):
    record = {"max_minutes": 5, "seconds": 1.0, "decay_start": 8, "num_train_steps": 10}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "minutes.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match="--num_train_steps=9: .* fixed its end at step 10"):
        run_experiment(make_experiment("run", num_train_steps=9, max_minutes=5))
