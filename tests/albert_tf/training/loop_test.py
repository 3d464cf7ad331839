"""The loop: replicas change nothing, an interruption changes nothing, and trouble is reported."""

import contextlib
import math
import os
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.models import AlbertPretrainer
from albert_tf.models.objectives import PretrainingObjective
from albert_tf.optimization import LAMB, Muon, WarmupPolynomialDecay
from albert_tf.training import Callbacks, Evaluator, LoopSettings, StepCost, Stepper, train
from albert_tf.training.checkpoint_files import find
from albert_tf.training.hooks.preemption import Preempted
from albert_tf.training.report.metrics_file import read_metrics
from albert_tf.training.steps import skip_bad_updates
from tests.run_results import tensors

ONE_DEVICE = tf.distribute.OneDeviceStrategy("CPU:0")


def make_stepper(config, strategy=ONE_DEVICE, guard=lambda optimizer: optimizer, kind=LAMB):
    tf.keras.utils.set_random_seed(3)
    with strategy.scope():
        model = AlbertPretrainer(config)
        optimizer = kind(WarmupPolynomialDecay(0.02, 10, 2))
        optimizer.build(model.trainable_variables)
    return Stepper(PretrainingObjective(model), guard(optimizer), strategy, seed=5)


class Restarted:
    """A stepper and an evaluator that are traced once, and begin where they began at each call."""

    def __init__(self, stepper, data):
        self._stepper = stepper
        self.evaluator = Evaluator([(stepper.objective, data(1000).take(2))], stepper.strategy)
        self._variables = [*stepper.objective.model.variables, *stepper.optimizer.variables]
        self._values = [variable.numpy() for variable in self._variables]

    def __call__(self):
        for variable, value in zip(self._variables, self._values):
            variable.assign(value)
        return self._stepper


@pytest.fixture(scope="module")
def alone(tiny_config, pretraining_data):
    """On one device, without dropout."""
    return Restarted(make_stepper(tiny_config), pretraining_data)


@pytest.fixture(scope="module")
def guarded(tiny_config, pretraining_data):
    """On one device; bad updates are left out."""
    return Restarted(make_stepper(tiny_config, guard=skip_bad_updates), pretraining_data)


def run(stepper, data, run_dir, evaluator=None, **settings):
    settings = LoopSettings(
        **{"num_train_steps": 6, "steps_per_loop": 1, "checkpoint_steps": 4, **settings}
    )
    train(stepper, data, evaluator, settings, str(run_dir), StepCost(tokens=96))
    return [row for row in read_metrics(str(run_dir / "metrics.csv")) if row["split"] == "train"]


def losses(rows):
    return [float(row["loss"]) for row in rows]


@pytest.fixture(scope="module")
def whole(alone, pretraining_data, tmp_path_factory):
    """The folder of a run of six single steps, and its weights."""
    folder, stepper = tmp_path_factory.mktemp("whole"), alone()
    run(stepper, pretraining_data, folder, alone.evaluator)
    return folder, stepper.objective.model.get_weights()


@pytest.mark.parametrize(
    "kind", [LAMB, Muon, pytest.param(LAMB, marks=(pytest.mark.fast_layers, pytest.mark.table))]
)
def test_an_interrupted_run_repeats_the_same_losses(
    tiny_config, pretraining_data, tmp_path, kind, eagerly
):
    """Muon's, whose loop is the same, run eagerly."""
    config = tiny_config.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    start = Restarted(make_stepper(config, kind=kind), pretraining_data)
    interrupted = tmp_path / "interrupted"

    def failing_data(start_step):
        return pretraining_data(start_step).take(5 - start_step)

    with eagerly() if kind is Muon else contextlib.nullcontext():
        expected = run(start(), pretraining_data, tmp_path / "whole")
        with pytest.raises((tf.errors.OutOfRangeError, StopIteration)):
            run(start(), failing_data, interrupted)
        assert len(read_metrics(str(interrupted / "metrics.csv"))) == 5
        (interrupted / "checkpoints" / "checkpoint").unlink()
        # Steps 1 to 4 of the first run, 5 and 6 of the second.
        assert losses(run(start(), pretraining_data, interrupted)) == losses(expected)


def test_several_steps_in_one_loop_equal_single_steps(pretraining_data, tmp_path, alone, whole):
    looped = alone()
    rows = run(looped, pretraining_data, tmp_path, steps_per_loop=4, eval_steps=5)
    assert [int(row["step"]) for row in rows] == [4, 5, 6]
    for left, right in zip(looped.objective.model.get_weights(), whole[1]):
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-6)
    assert looped.train.experimental_get_tracing_count() == 1


@pytest.mark.one_stack
def test_the_weights_that_a_run_begins_with_are_evaluated_once(alone, pretraining_data, tmp_path):
    stepper = alone()
    at_first = alone.evaluator()
    for last in (1, 2):  # The second call goes on from step 1.
        settings = {"eval_first": True, "num_train_steps": last}
        run(stepper, pretraining_data, tmp_path, alone.evaluator, **settings)
    rows = read_metrics(str(tmp_path / "metrics.csv"))
    assert [row["step"] for row in rows if row["split"] == "eval"] == ["0", "1", "2"]
    assert float(rows[0]["loss"]) == pytest.approx(at_first["loss"], abs=1e-5)
    assert rows[0]["masked_lm_loss"] != rows[-1]["masked_lm_loss"]


def test_a_loss_that_is_not_finite_stops_the_run(alone, pretraining_data, tmp_path):
    stepper = alone()
    stepper.objective.model.encoder.pooler.bias.assign(tf.fill([16], float("nan")))
    with pytest.raises(UserError, match="not finite at step 1; last good checkpoint: None"):
        run(stepper, pretraining_data, tmp_path)


@pytest.fixture
def bad_data(pretraining_data):
    """(step -> whether it is bad) -> data whose weights are infinite at such steps."""

    def make(is_bad):
        def poison(step, batch):
            weights = batch["masked_lm_weights"]
            bad_weights = tf.where(is_bad(step + 1), float("inf"), weights)
            return {**batch, "masked_lm_weights": bad_weights}

        return lambda start_step: pretraining_data(start_step).enumerate(start_step).map(poison)

    return make


def test_bad_steps_are_reported_and_counted(guarded, bad_data, tmp_path, capsys):
    """Steps 3 and 6 are bad; one of them may be left out."""
    data = bad_data(lambda step: (step == 3) | (step == 6))
    callbacks = Callbacks(describe_batch=lambda step: f"file {step}")
    settings = LoopSettings(10, steps_per_loop=4, checkpoint_steps=4, max_bad_steps=1)
    with pytest.raises(UserError, match=r"step 6 \(its batch comes from file 6\).*step-4"):
        train(guarded(), data, None, settings, str(tmp_path), StepCost(96), callbacks)
    shown = capsys.readouterr().out
    assert "not finite at step 3 (its batch comes from file 3); 1 step(s) left out" in shown
    first = read_metrics(str(tmp_path / "metrics.csv"))[0]  # Of the good steps among four.
    assert first["step"] == "4" and math.isfinite(float(first["loss"]))


@pytest.mark.one_stack
def test_bad_steps_in_a_row(guarded, bad_data, tmp_path):
    """All from step 9 on: ten of them stop a run, and one that ends before ends well, with the
    weights of step 8. What is reported of them is nan.
    """
    data, offered = bad_data(lambda step: step >= 9), []
    callbacks = Callbacks(on_evaluation=lambda step, metrics: offered.append(step))

    def run_until(last_step, folder):
        settings = LoopSettings(last_step, 2, checkpoint_steps=4, eval_steps=4, max_bad_steps=100)
        given = guarded(), data, guarded.evaluator, settings
        train(*given, str(folder), StepCost(96), callbacks)

    run_until(10, tmp_path)
    assert find(str(tmp_path / "checkpoints")) == offered == [4, 8, 10]
    before, after = (weights_at(tmp_path, step) for step in (8, 10))
    assert before and before.keys() == after.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)
    rows = [row for row in read_metrics(str(tmp_path / "metrics.csv")) if row["split"] == "train"]
    assert [row["step"] for row in rows] == ["2", "4", "6", "8", "10"]
    for name in ("loss", "masked_lm_accuracy", "gradient_norm"):
        assert [math.isnan(float(row[name])) for row in rows] == [False] * 4 + [True], name
    assert float(rows[4]["learning_rate"]) > 0

    with pytest.raises(UserError, match="not finite at step 17; 10 steps in a row .*step-8"):
        run_until(40, tmp_path / "longer")
    assert offered == [4, 8, 10, 4, 8] and find(str(tmp_path / "longer" / "checkpoints")) == [4, 8]


def weights_at(run_dir, step):
    """Of the model, by name."""
    found = tensors(run_dir / "checkpoints" / f"step-{step}")
    return {
        name: value
        for name, value in found.items()
        if name.startswith("model/") and "OPTIMIZER_SLOT" not in name
    }


@pytest.mark.one_stack
def test_what_is_not_saved_after_a_bad_step(guarded, bad_data, tmp_path):
    """A checkpoint that is due is made at the next sound stop; SIGTERM does not claim one."""

    def describe(step):  # Called when the loop finds a bad step.
        if step == 7:
            os.kill(os.getpid(), signal.SIGTERM)
        return ""

    data = bad_data(lambda step: (step == 4) | (step == 7))
    callbacks = Callbacks(describe_batch=describe)
    settings = LoopSettings(10, steps_per_loop=1, checkpoint_steps=4, max_bad_steps=100)
    with pytest.raises(Preempted, match="at step 7, .*newest checkpoint is of step 5;") as raised:
        train(guarded(), data, None, settings, str(tmp_path), StepCost(96), callbacks)
    assert raised.value.last_saved == 5 and find(str(tmp_path / "checkpoints")) == [5]


@pytest.mark.one_stack
def test_a_complete_run_is_evaluated_again(alone, whole, pretraining_data, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole[0], folder)
    before = (folder / "metrics.csv").read_bytes()
    (folder / "curves.png").unlink()
    (folder / "checkpoints" / "checkpoint").write_bytes(b"")  # As a power cut leaves it.

    def again(last_step):
        given = alone(), pretraining_data, alone.evaluator, LoopSettings(last_step)
        return train(*given, str(folder), StepCost(96))

    metrics = again(6)
    assert (folder / "metrics.csv").read_bytes() == before
    with pytest.raises(UserError, match="already made 6 updates, more than num_train_steps 5"):
        again(5)
    rows = read_metrics(str(folder / "metrics.csv"))
    assert metrics["masked_lm_loss"] == pytest.approx(float(rows[-1]["masked_lm_loss"]), rel=1e-5)
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_when_the_loop_stops():
    """At multiples of each period, and at the end."""
    settings = LoopSettings(25, steps_per_loop=10, checkpoint_steps=7, eval_steps=4)
    stops, step = [], 0
    while step < 25:
        step = settings.next_stop(step)
        stops.append(step)
    assert stops == [4, 7, 8, 10, 12, 14, 16, 20, 21, 24, 25]
    without = LoopSettings(25, steps_per_loop=10, checkpoint_steps=7)
    assert [without.next_stop(step) for step in (0, 7, 10, 21, 24)] == [7, 10, 14, 25, 25]


def test_what_is_due():
    settings = LoopSettings(25)
    due = {period: [s for s in range(26) if settings.is_due(s, period)] for period in (0, 10)}
    assert due == {0: [25], 10: [0, 10, 20, 25]}
