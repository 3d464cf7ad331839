"""A small task of one's own: texts in two classes, by their last word."""

import pytest
import tensorflow as tf

from albert_tf.training import InitialModel
from albert_tf.training.devices import Devices
from data_pipeline.finetuning.examples import Split, TextExample


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
