"""Where a task's examples come from, and the model that is made for it."""

from __future__ import annotations

import dataclasses

import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.choice_tasks import multiple_choice
from albert_tf.finetuning.spec import DataSource
from albert_tf.finetuning.text_tasks import classification, regression
from albert_tf.metrics import SCORERS
from albert_tf.models import AlbertClassifier, AlbertMultipleChoice

TASK = classification("mine", lambda folder, split: (folder, split), ("a", "b"), SCORERS["cola"])


def test_examples_come_from_memory_a_file_or_a_folder(small_splits):
    assert TASK.read(DataSource("data"), "dev") == ("data", "dev")
    train = small_splits["train"]
    assert TASK.read(DataSource("data", splits={"train": train}), "train") is train
    with pytest.raises(
        UserError, match=r"reads the files .* in --data_dir, not x.tsv. Use --task=tsv"
    ):
        TASK.read(DataSource("data", files={"dev": "x.tsv"}), "dev")
    with pytest.raises(UserError, match="--data_dir is missing: the folder with the data of mine"):
        TASK.read(DataSource(), "dev")
    own = dataclasses.replace(TASK, reader=None, file_reader=lambda path, split: (path, split))
    assert own.read(DataSource(files={"dev": "x.tsv"}), "dev") == ("x.tsv", "dev")
    with pytest.raises(UserError, match="--dev_file is missing, and --task=mine needs it"):
        own.read(DataSource("data"), "dev")


def test_labels_are_the_tasks_or_those_found(small_splits):
    assert TASK.labels_in(small_splits["train"]) == ("a", "b")
    found = dataclasses.replace(TASK, labels=None, find_labels=lambda split: ["x", split.name])
    assert found.labels_in(small_splits["train"]) == ("x", "train")


def test_a_model_gets_what_its_class_takes(tiny_config):
    model = TASK.new_model(tiny_config, ("a", "b"), 0.3, packed=False)
    assert type(model) is AlbertClassifier and not model.packed
    assert (model.num_classes, model.dropout_rate) == (2, 0.3)
    number = regression("mine", None, SCORERS["sts-b"])
    assert number.new_model(tiny_config, (), 0.1, packed=None).num_classes == 1
    choice = multiple_choice("mine", lambda *given: None, ("A", "B"), SCORERS["copa"])
    model = choice.new_model(tiny_config, ("A", "B"), 0.2, packed=None)
    assert type(model) is AlbertMultipleChoice and model.dropout_rate == 0.2
