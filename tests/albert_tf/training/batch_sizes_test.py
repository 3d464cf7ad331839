"""Batches whose size changes on the way: their examples, and runs of them."""

import contextlib
import dataclasses
import json

import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.training import LoopSettings, OptimizerSettings, run_experiment, running
from albert_tf.training.batch_sizes import BatchSizes
from albert_tf.training.report.metrics_file import read_metrics
from tests.run_results import check_tensors

SIZES = BatchSizes.of("8@0,4@3,8@5")


def test_sizes_and_the_examples_before():
    assert [SIZES.at(step) for step in range(7)] == [8, 8, 8, 4, 4, 8, 8]
    assert [SIZES.before(step) for step in range(8)] == [0, 8, 16, 24, 28, 32, 40, 48]
    constant = BatchSizes.of(8)
    assert (constant.at(10**9), constant.before(10**9)) == (8, 8 * 10**9)
    assert [one.is_constant for one in (SIZES, constant, BatchSizes.of("8@0"))] == [0, 1, 1]
    assert (SIZES.flag, constant.flag) == (
        "--batch_size_schedule=8@0,4@3,8@5",
        "--train_batch_size=8",
    )


def test_batches_begin_with_the_examples_that_are_left():
    batches = SIZES.batches(lambda *given, **others: (given, others))
    assert batches() == ((8,), {"start_step": 0, "examples_before": 0})
    expected = {"start_step": 4, "examples_before": 28, "input_context": None}
    assert batches(start_step=4, input_context=None) == ((4,), expected)


@pytest.mark.parametrize("text", ["8", "0@0", "8@1", "8.5@0", "8@0,9999999@5"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(UserError, match=f"^--batch_size_schedule={text}: expected .*1,048,576"):
        BatchSizes.of(text)


def test_each_size_is_divided_equally():
    SIZES.check(2, 2)
    with pytest.raises(UserError, match=r"8@5: 4 is not divisible by 2 .*_steps=4\. .*ples of 8"):
        SIZES.check(2, 4)
    BatchSizes.of(9).check(2, 1)
    BatchSizes.of(24).check(3, 4)
    with pytest.raises(UserError, match="size=20 is not divisible by 2 replica.*_steps=4"):
        BatchSizes.of(20).check(2, 4)
    with pytest.raises(UserError, match="--train_batch_size=0 is not a positive number"):
        BatchSizes.of(0).check(2, 1)


@pytest.fixture
def described(tiny_config, pretraining_data, new_experiment):
    """(strategy, updates, folder, sizes) -> an experiment of updates of these sizes."""

    def describe(strategy, num_train_steps, folder="run", sizes=SIZES, **settings):
        def batches(start_step):
            size = sizes.at(start_step)
            rows = pretraining_data(start_step)
            return rows.map(lambda batch: tf.nest.map_structure(lambda all: all[:size], batch))

        with strategy.scope():
            found = new_experiment(
                tiny_config,
                folder,
                OptimizerSettings("lamb", 0.01, 1, schedule="wsd", decay_share=0.0),
                LoopSettings(num_train_steps, steps_per_loop=2, **settings),
                batches,
            )
        data = dataclasses.replace(found.data, batches=batches, batch_sizes=sizes)
        return dataclasses.replace(found, data=data)

    return describe


@pytest.fixture
def steppers(monkeypatch):
    """Those that runs are made with."""
    made, make = [], running.make_stepper
    monkeypatch.setattr(running, "make_stepper", lambda given: made.append(make(given)) or made[-1])
    return made


def losses(folder):
    return {
        int(row["step"]): float(row["loss"]) for row in read_metrics(str(folder / "metrics.csv"))
    }


def test_each_size_is_traced_once_on_any_devices(
    described, steppers, tmp_path, two_devices, eagerly
):
    """Of three parts of the run, the last has the size of the first; all end with a report."""
    one = tf.distribute.OneDeviceStrategy("CPU:0")
    for folder, strategy in (("one", one), ("two", two_devices)):
        tf.keras.utils.set_random_seed(3)
        with eagerly() if strategy is one else contextlib.nullcontext():
            run_experiment(described(strategy, 6, folder))
    assert steppers[1].train.experimental_get_tracing_count() == 2
    found = losses(tmp_path / "two")
    assert list(found) == [2, 3, 4, 5, 6]
    assert found == pytest.approx(losses(tmp_path / "one"), abs=1e-5)
    fixed = json.loads((tmp_path / "one" / "run.json").read_text())
    assert fixed["train_batch_size"] == "8@0,4@3,8@5"


@pytest.mark.usefixtures("eager")
def test_an_interruption_changes_nothing(described, tmp_path):
    """Before, at and after a change."""
    one, sizes = tf.distribute.OneDeviceStrategy("CPU:0"), BatchSizes.of("8@0,4@2")
    for folder, ends in (("whole", [4]), ("parts", [1, 2, 3, 4])):
        for end in ends:
            tf.keras.utils.set_random_seed(3)
            run_experiment(described(one, end, folder, sizes))
    last = "checkpoints/step-4"
    check_tensors(tmp_path / "parts" / last, tmp_path / "whole" / last)
    with pytest.raises(UserError, match="train_batch_size was '8@0,4@2' and is 8"):
        run_experiment(described(one, 5, "parts", BatchSizes.of(8)))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"num_examples": 7}, "^--batch_size_schedule=8@0,4@3,8@5 is more than the 7 examples"),
        ({"batch_sizes": BatchSizes.of("8@0,5@3")}, "^--batch_size_schedule=8@0,5@3: 5 is not div"),
    ],
)
def test_what_does_not_go_together(described, tmp_path, two_devices, changes, message):
    found = described(two_devices, 6)
    found = dataclasses.replace(found, data=dataclasses.replace(found.data, **changes))
    with pytest.raises(UserError, match=message):
        run_experiment(found)
    with pytest.raises(UserError, match="^--max_minutes=1 plans the last update from the speed of"):
        run_experiment(described(two_devices, 6, max_minutes=1))
    assert not (tmp_path / "run").exists()
