"""The loop: replicas change nothing, an interruption changes nothing, and trouble is reported."""

import math
import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.models import AlbertPretrainer
from albert_tf.models.objectives import PretrainingObjective
from albert_tf.optimization import LAMB, WarmupPolynomialDecay
from albert_tf.training import Callbacks, Evaluator, LoopSettings, StepCost, Stepper, train
from albert_tf.training.checkpoint_files import find
from albert_tf.training.preemption import Preempted
from albert_tf.training.report.metrics_file import read_metrics
from albert_tf.training.steps import skip_bad_updates

ONE_DEVICE = tf.distribute.OneDeviceStrategy("CPU:0")


def make_stepper(config, strategy=ONE_DEVICE, learning_rate=0.02, num_train_steps=10):
    tf.keras.utils.set_random_seed(3)
    with strategy.scope():
        model = AlbertPretrainer(config)
        optimizer = LAMB(WarmupPolynomialDecay(learning_rate, num_train_steps, 2))
    return Stepper(PretrainingObjective(model), optimizer, strategy, seed=5)


def run(stepper, data, run_dir, **settings):
    settings = LoopSettings(
        **{"num_train_steps": 10, "steps_per_loop": 1, "checkpoint_steps": 4, **settings}
    )
    evaluator = Evaluator([(stepper.objective, data(1000).take(2))], stepper.strategy)
    train(stepper, data, evaluator, settings, str(run_dir), StepCost(tokens=96))
    return [row for row in read_metrics(str(run_dir / "metrics.csv")) if row["split"] == "train"]


def losses(rows):
    return [float(row["loss"]) for row in rows]


def test_two_replicas_equal_one_device(
    tiny_config, two_devices, pretraining_data, tmp_path, eagerly
):
    with eagerly():
        alone = run(make_stepper(tiny_config), pretraining_data, tmp_path / "one")
    together = run(make_stepper(tiny_config, two_devices), pretraining_data, tmp_path / "two")
    assert two_devices.num_replicas_in_sync == 2
    assert losses(together) == pytest.approx(losses(alone), abs=1e-5)
    assert len(alone) == 10 and losses(alone)[0] != losses(alone)[-1]


@pytest.mark.fast_layers
def test_an_interrupted_run_repeats_the_same_losses(tiny_config, pretraining_data, tmp_path):
    config = tiny_config.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    expected = run(make_stepper(config), pretraining_data, tmp_path / "whole")

    def failing_data(start_step):
        return pretraining_data(start_step).take(6 - start_step)

    with pytest.raises(tf.errors.OutOfRangeError):
        run(make_stepper(config), failing_data, tmp_path / "interrupted")
    assert len(read_metrics(str(tmp_path / "interrupted" / "metrics.csv"))) == 6
    (tmp_path / "interrupted" / "checkpoints" / "checkpoint").unlink()
    resumed = run(make_stepper(config), pretraining_data, tmp_path / "interrupted")
    assert losses(resumed) == losses(
        expected
    )  # Steps 1 to 4 of the first run, 5 to 10 of the second.


def test_several_steps_in_one_loop_equal_single_steps(
    tiny_config, pretraining_data, tmp_path, eagerly
):
    single = make_stepper(tiny_config)
    with eagerly():
        run(single, pretraining_data, tmp_path / "single")
    looped = make_stepper(tiny_config)
    rows = run(looped, pretraining_data, tmp_path / "looped", steps_per_loop=4, eval_steps=5)
    assert [int(row["step"]) for row in rows] == [4, 5, 8, 10]
    for left, right in zip(single.objective.model.variables, looped.objective.model.variables):
        tf.debugging.assert_near(left, right, atol=1e-6)
    assert looped.train.experimental_get_tracing_count() == 1


@pytest.mark.one_stack
@pytest.mark.usefixtures("eager")
def test_the_weights_that_a_run_begins_with_are_evaluated_once(
    tiny_config, pretraining_data, tmp_path
):
    stepper = make_stepper(tiny_config)
    held_out = pretraining_data(1000).take(2)
    at_first = Evaluator([(stepper.objective, held_out)], ONE_DEVICE)()
    for last in (1, 2):  # The second call goes on from step 1.
        run(stepper, pretraining_data, tmp_path, eval_first=True, num_train_steps=last)
    rows = read_metrics(str(tmp_path / "metrics.csv"))
    assert [row["step"] for row in rows if row["split"] == "eval"] == ["0", "1", "2"]
    assert float(rows[0]["loss"]) == pytest.approx(at_first["loss"], abs=1e-5)
    assert rows[0]["masked_lm_loss"] != rows[-1]["masked_lm_loss"]


@pytest.mark.one_stack
@pytest.mark.usefixtures("eager")
def test_a_checkpoint_of_another_model_is_an_error(tiny_config, pretraining_data, tmp_path):
    run(make_stepper(tiny_config), pretraining_data, tmp_path, num_train_steps=1)
    wider = make_stepper(tiny_config.replace(intermediate_size=48))
    with pytest.raises(UserError, match="does not fit this model.*--output_dir"):
        run(wider, pretraining_data, tmp_path)


def test_a_loss_that_is_not_finite_stops_the_run(tiny_config, pretraining_data, tmp_path):
    stepper = make_stepper(tiny_config)
    stepper.objective.model.encoder.pooler.bias.assign(tf.fill([16], float("nan")))
    with pytest.raises(UserError, match="not finite at step 1; last good checkpoint: None"):
        run(stepper, pretraining_data, tmp_path)


def test_bad_steps_are_reported_and_counted(tiny_config, pretraining_data, tmp_path, capsys):
    """Steps 3 and 6 are bad; one of them may be left out."""

    stepper, data = with_bad_steps(
        make_stepper(tiny_config), pretraining_data, lambda step: (step == 3) | (step == 6)
    )
    callbacks = Callbacks(describe_batch=lambda step: f"file {step}")
    settings = LoopSettings(10, steps_per_loop=4, checkpoint_steps=4, max_bad_steps=1)
    with pytest.raises(UserError, match=r"step 6 \(its batch comes from file 6\).*step-4"):
        train(stepper, data, None, settings, str(tmp_path), StepCost(96), callbacks)
    shown = capsys.readouterr().out
    assert "not finite at step 3 (its batch comes from file 3); 1 step(s) left out" in shown


def with_bad_steps(stepper, pretraining_data, is_bad):
    """The stepper with bad updates left out, and data whose weights are infinite at some steps."""

    def data(start_step):
        def poison(step, batch):
            weights = batch["masked_lm_weights"]
            return {
                **batch,
                "masked_lm_weights": tf.where(is_bad(step + 1), float("inf"), weights),
            }

        return pretraining_data(start_step).enumerate(start_step).map(poison)

    guarded = skip_bad_updates(stepper.optimizer)
    return Stepper(stepper.objective, guarded, ONE_DEVICE, seed=5), data


@pytest.mark.one_stack
def test_bad_steps_in_a_row(tiny_config, pretraining_data, tmp_path):
    """All from step 9 on: ten of them stop a run, and one that ends before ends well, with the
    weights of step 8. What is reported of them is nan.
    """
    stepper, data = with_bad_steps(
        make_stepper(tiny_config), pretraining_data, lambda step: step >= 9
    )
    offered, evaluator = (
        [],
        Evaluator([(stepper.objective, pretraining_data(1000).take(1))], ONE_DEVICE),
    )
    callbacks = Callbacks(on_evaluation=lambda step, metrics: offered.append(step))

    def run_until(last_step, folder):
        settings = LoopSettings(last_step, 2, checkpoint_steps=4, eval_steps=4, max_bad_steps=100)
        train(stepper, data, evaluator, settings, str(folder), StepCost(96), callbacks)

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

    with pytest.raises(UserError, match="not finite at step 19; 10 steps in a row .* None"):
        run_until(40, tmp_path / "longer")
    assert offered == [4, 8, 10] and not find(str(tmp_path / "longer" / "checkpoints"))


def weights_at(run_dir, step):
    """Of the model, by name."""
    reader = tf.train.load_checkpoint(str(run_dir / "checkpoints" / f"step-{step}"))
    names = [name for name in reader.get_variable_to_shape_map() if name.startswith("model/")]
    return {name: reader.get_tensor(name) for name in names if "OPTIMIZER_SLOT" not in name}


@pytest.mark.one_stack
def test_what_is_not_saved_after_a_bad_step(tiny_config, pretraining_data, tmp_path):
    """A checkpoint that is due is made at the next sound stop; SIGTERM does not claim one."""
    stepper, data = with_bad_steps(
        make_stepper(tiny_config), pretraining_data, lambda step: (step == 4) | (step == 7)
    )

    def describe(step):  # Called when the loop finds a bad step.
        if step == 7:
            os.kill(os.getpid(), signal.SIGTERM)
        return ""

    callbacks = Callbacks(describe_batch=describe)
    settings = LoopSettings(10, steps_per_loop=1, checkpoint_steps=4, max_bad_steps=100)
    with pytest.raises(Preempted, match="at step 7, .*newest checkpoint is of step 5;") as raised:
        train(stepper, data, None, settings, str(tmp_path), StepCost(96), callbacks)
    assert raised.value.last_saved == 5 and find(str(tmp_path / "checkpoints")) == [5]


@pytest.mark.one_stack
@pytest.mark.usefixtures("eager")
def test_a_complete_run_is_evaluated_again(tiny_config, pretraining_data, tmp_path):
    run(make_stepper(tiny_config), pretraining_data, tmp_path)
    again = make_stepper(tiny_config)
    settings = LoopSettings(num_train_steps=10)
    evaluator = Evaluator([(again.objective, pretraining_data(1000).take(2))], ONE_DEVICE)
    before = (tmp_path / "metrics.csv").read_bytes()
    (tmp_path / "checkpoints" / "checkpoint").write_bytes(b"")  # As a power cut leaves it.
    metrics = train(again, pretraining_data, evaluator, settings, str(tmp_path), StepCost(96))
    assert (tmp_path / "metrics.csv").read_bytes() == before
    with pytest.raises(UserError, match="already made 10 updates, and is now to end after 9"):
        train(again, pretraining_data, None, LoopSettings(9), str(tmp_path), StepCost(96))
    rows = read_metrics(str(tmp_path / "metrics.csv"))
    assert metrics["masked_lm_loss"] == pytest.approx(float(rows[-1]["masked_lm_loss"]), rel=1e-5)
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


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


def test_numbers_have_bounds():
    positive = ("num_train_steps", "steps_per_loop", "checkpoint_steps", "keep_checkpoints")
    lowest = {**dict.fromkeys(positive, 1), "eval_steps": 0, "max_bad_steps": 0}
    for name, least in lowest.items():
        LoopSettings(**{"num_train_steps": 5, name: least})
        with pytest.raises(UserError, match=f"--{name}={least - 1}: expected an integer from "):
            LoopSettings(**{"num_train_steps": 5, name: least - 1})


def test_defaults():
    assert LoopSettings(7) == LoopSettings(
        num_train_steps=7,
        steps_per_loop=10,
        checkpoint_steps=1000,
        eval_steps=0,
        keep_checkpoints=3,
        max_bad_steps=0,
        allow_changes=(),
    )
