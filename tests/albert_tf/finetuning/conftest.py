"""A small task of one's own: texts in two classes, by their last word; and short runs."""

import pytest
import tensorflow as tf

from albert_tf.finetuning import FineTuningSettings, TaskData, finetune
from albert_tf.training import InitialModel, LoopSettings, OptimizerSettings, RunSettings
from albert_tf.training.devices import Devices
from data_pipeline.finetuning.examples import Split, TextExample
from data_pipeline.finetuning.features import LengthSettings


@pytest.fixture
def one_device() -> Devices:
    return Devices(tf.distribute.OneDeviceStrategy("CPU:0"), packed=True, is_fast=False)


@pytest.fixture
def small_splits(few_words) -> dict[str, Split]:
    """train (20 texts) and dev (9): of 1 to 11 words; the label is that of the last word."""

    def split(name: str, first: int, count: int) -> Split:
        examples = []
        for number in range(first, first + count):
            words = few_words[number % 24 :][: 1 + number * 5 % 11]
            label = "long" if len(words[-1]) > 4 else "short"
            examples.append(
                TextExample(f"{name}-{number}", " ".join(words), None, label, "made up", number)
            )
        return Split(name, examples)

    return {"train": split("train", 0, 20), "dev": split("dev", 20, 9)}


@pytest.fixture
def small_model(work) -> InitialModel:
    """A configuration with dropout, without weights; the vocabulary is work/vocabulary."""
    return InitialModel(config_file=str(work / "config.json"))


@pytest.fixture
def vocab_file(work) -> str:
    return str(work / "vocabulary" / "spiece.model")


@pytest.fixture
def tune(small_model, vocab_file, one_device, tmp_path):
    """(name, task, splits, devices, start, teacher, parts of a batch, **settings) -> the results of
    two updates in tmp_path / name; longer runs are evaluated and saved after every second.
    """

    def run(
        name, task, splits, devices=one_device, start=small_model, teacher=None, parts=1, **settings
    ):
        folder = str(tmp_path / name)
        fields = {"learning_rate": 0.01, "train_batch_size": 4, "num_train_steps": 2, "seed": 5}
        fields |= {"vocab_file": vocab_file, "lengths": LengthSettings(32), **settings}

        def run_settings(recipe):
            optimizer = OptimizerSettings("adamw", recipe.learning_rate, recipe.num_warmup_steps)
            loop = LoopSettings(
                recipe.num_train_steps, steps_per_loop=2, checkpoint_steps=2, eval_steps=2
            )
            return RunSettings(folder, optimizer, loop, parts, eval_batch_size=4)

        data, settings = TaskData(splits=splits), FineTuningSettings(**fields)
        return finetune(start, task, data, folder, settings, devices, run_settings, teacher)

    return run
