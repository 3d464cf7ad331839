"""What every run does: checks before anything is written, one folder, the models that are kept."""

import contextlib
import dataclasses
import json

import pytest
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.training import (
    Evaluator,
    Experiment,
    LoopSettings,
    OptimizerSettings,
    RunSettings,
    run_experiment,
)
from albert_tf.training.report.metrics_file import read_metrics


@pytest.fixture
def described(tiny_config, pretraining_data, new_experiment):
    """(strategy=default) -> an experiment of two updates in tmp_path / run."""

    def describe(strategy: tf.distribute.Strategy | None = None) -> Experiment:
        with (strategy or tf.distribute.get_strategy()).scope():
            found = new_experiment(
                tiny_config,
                "run",
                OptimizerSettings("lamb", 0.01, 1),
                LoopSettings(2, steps_per_loop=1, eval_steps=1),
                card={"a figure": "17"},
                next_commands=lambda: ["first", "second"],
            )
        task, held_out = found.objective, pretraining_data(1000).take(2)
        evaluator = Evaluator([(task, held_out)], task.model.distribute_strategy)
        return dataclasses.replace(found, evaluator=evaluator)

    return describe


@pytest.mark.parametrize(
    "kind",
    ["default", *(pytest.param(kind, marks=pytest.mark.table) for kind in ("one", "two devices"))],
)
def test_a_run(described, tmp_path, two_devices, kind, capsys, eagerly):
    """Card, figures, models, next commands; on whatever devices the model was made for. The
    default strategy runs eagerly: the graph is the one of one device.
    """
    one_device = tf.distribute.OneDeviceStrategy("CPU:0")
    found = described({"default": None, "one": one_device, "two devices": two_devices}[kind])
    seen = []
    found = dataclasses.replace(found, print_results=lambda metrics: seen.append(metrics))
    with eagerly() if kind == "default" else contextlib.nullcontext():
        figures = run_experiment(found)
    shown = capsys.readouterr().out
    assert shown.startswith("A test\n") and "a figure             17\n" in shown
    model_dir = tmp_path / "run" / "last"
    assert shown.endswith(f"Model: {model_dir}\nNext: first\n  or: second\n")
    assert seen == [figures] and figures["loss"] > 0
    assert native.read_metadata(str(model_dir))["metrics"] == figures
    assert native.read_metadata(str(model_dir))["num_train_steps"] == 2
    assert native.read_metadata(str(tmp_path / "run" / "best"))["metrics"]["loss"] > 0
    rows = read_metrics(str(tmp_path / "run" / "metrics.csv"))
    assert [row["step"] for row in rows if row["split"] == "eval"] == ["1", "2"]


@pytest.mark.usefixtures("eager")
def test_the_settings_are_recorded_and_watched(described, tmp_path, capsys):
    """Without flags their fields stand for them: another rate is said, another kind refused."""
    first = described()
    run_experiment(first)
    recorded = json.loads((tmp_path / "run" / "flags.json").read_text())
    assert recorded["optimizer"] == "lamb" and recorded["learning_rate"] == 0.01
    assert recorded["precision"] == "float32" and recorded["eval_batch_size"] == 64
    fixed = json.loads((tmp_path / "run" / "run.json").read_text())
    del fixed["sha256"]
    assert fixed == {"seed": 3, "train_batch_size": 8, "source": "random"}

    def again(num_train_steps: int = 3, **optimizer) -> None:
        one = described()
        keras.backend.clear_session()
        settings = dataclasses.replace(
            one.settings,
            optimizer=dataclasses.replace(one.settings.optimizer, **optimizer),
            loop=dataclasses.replace(one.settings.loop, num_train_steps=num_train_steps),
        )
        run_experiment(dataclasses.replace(one, settings=settings))

    with pytest.raises(UserError, match="was started with --optimizer=lamb"):
        again(optimizer="adamw")
    with pytest.raises(UserError, match="has already made 2 updates"):
        again(num_train_steps=1)
    capsys.readouterr()
    again(learning_rate=0.02)
    shown = capsys.readouterr().out
    assert "--learning_rate: 0.01 -> 0.02" in shown and "resuming at step 2" in shown


@pytest.mark.parametrize(
    ("of_data", "message"),
    [
        ({"num_examples": 7}, "--train_batch_size=8 is more than the 7 examples of made-up"),
        ({"vocab_size": 49}, "the vocabulary of made-up batches has 49 pieces"),
    ],
)
def test_nothing_is_written_when_something_does_not_fit(described, tmp_path, of_data, message):
    found = described()
    found = dataclasses.replace(found, data=dataclasses.replace(found.data, **of_data))
    with pytest.raises(UserError, match=message):
        run_experiment(found)
    assert not (tmp_path / "run").exists()


def test_errors_of_the_data_are_explained(described):
    found = described()
    data = dataclasses.replace(
        found.data,
        batches=lambda start_step: found.data.batches(start_step).take(1),
        explain=lambda error: UserError(f"made-up batches end: {type(error).__name__}"),
    )
    with pytest.raises(UserError, match="made-up batches end: OutOfRangeError"):
        run_experiment(dataclasses.replace(found, data=data))


def test_flags_are_recorded_as_they_are_and_settings_by_their_names():
    optimizer, loop = OptimizerSettings("lamb", 0.1), LoopSettings(4)
    assert RunSettings("run", optimizer, loop, flags={"a": 1}).as_flags() == {"a": 1}
    found = RunSettings("run", optimizer, loop).as_flags()
    assert found == {
        "output_dir": "run", "gradient_accumulation_steps": 1, "eval_batch_size": 64,
        "jit_compile": False, "overwrite": False, **dataclasses.asdict(optimizer),
        **dataclasses.asdict(loop), "precision": "float32",
    }  # fmt: skip


def test_nothing_to_train(described, tmp_path):
    found = described()
    found.objective.model.trainable = False
    with pytest.raises(UserError, match="no trainable variable"):
        run_experiment(found)
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("eager")
def test_the_folder_is_kept_until_the_run_is_concluded(described):
    seen = []

    def conclude():
        with pytest.raises(UserError, match="is in use"):
            run_experiment(described())
        seen.append("concluded")

    run_experiment(described(), conclude)
    assert seen == ["concluded"]
