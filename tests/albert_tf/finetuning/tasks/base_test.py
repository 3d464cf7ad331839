"""Where a task's examples come from, and the model that is made for it."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.base import Predictions, TaskData
from albert_tf.finetuning.tasks.choices import MultipleChoiceTask
from albert_tf.finetuning.tasks.texts import ClassificationTask, MultiLabelTask, RegressionTask
from albert_tf.metrics import SCORERS
from albert_tf.models import AlbertClassifier, AlbertMultipleChoice

TASK = ClassificationTask(
    "mine", lambda folder, split: (folder, split), ("a", "b"), SCORERS["cola"]
)


def test_examples_come_from_memory_a_file_or_a_folder(small_splits):
    assert TASK.read(TaskData("data"), "dev") == ("data", "dev")
    train = small_splits["train"]
    assert TASK.read(TaskData("data", splits={"train": train}), "train") is train
    with pytest.raises(
        UserError, match=r"reads the files .* in --data_dir, not x.tsv. Use --task=tsv"
    ):
        TASK.read(TaskData("data", files={"dev": "x.tsv"}), "dev_matched")
    with pytest.raises(UserError, match="--data_dir is missing: the folder with the data of mine"):
        TASK.read(TaskData(), "dev")
    own = dataclasses.replace(TASK, reader=None, file_reader=lambda path, split: (path, split))
    assert own.read(TaskData(files={"dev": "x.tsv"}), "dev") == ("x.tsv", "dev")
    for split, flag in (("dev", "dev"), ("test", "predict")):
        with pytest.raises(UserError, match=f"--{flag}_file is missing, and --task=mine needs it"):
            own.read(TaskData("data"), split)
    choices = MultipleChoiceTask("race", None, tuple("AB"), SCORERS["race"])
    with pytest.raises(UserError, match="holds TextExamples, and --task=race reads ChoiceExample"):
        choices.read(TaskData(splits={"train": train}), "train")


def test_labels_are_the_tasks_or_those_found(small_splits):
    assert TASK.labels_in(small_splits["train"]) == ("a", "b")
    found = dataclasses.replace(TASK, labels=None)
    assert found.labels_in(small_splits["train"]) == ("long", "short")
    numbers = [dataclasses.replace(each, label=0.5) for each in small_splits["train"].examples]
    several = MultiLabelTask("several", None, None, SCORERS["multi_label"])
    for task in (found, several):
        with pytest.raises(UserError, match="the label 0.5 is not a class name"):
            task.labels_in(dataclasses.replace(small_splits["train"], examples=numbers))


def test_remarks_name_labels_and_say_nothing_of_one_example():
    one = SimpleNamespace(targets={"label_ids": np.array([1])})
    three = SimpleNamespace(targets={"label_ids": np.array([1, 0, 1])})
    assert TASK.remarks(one, Predictions([0]), ("a", "b")) == []
    (remark,) = TASK.remarks(three, Predictions([1, 1, 1]), ("a", "b"))
    assert remark.startswith("Every prediction is 'b', which is right for 66.7%")


def test_a_model_gets_what_its_class_takes(tiny_config):
    model = TASK.new_model(tiny_config, ("a", "b"), 0.3, packed=False)
    assert type(model) is AlbertClassifier and not model.packed
    assert (model.num_classes, model.dropout_rate) == (2, 0.3)
    number = RegressionTask("mine", None, SCORERS["sts-b"])
    assert number.new_model(tiny_config, (), 0.1, packed=None).num_classes == 1
    choice = MultipleChoiceTask("mine", lambda *given: None, ("A", "B"), SCORERS["copa"])
    model = choice.new_model(tiny_config, ("A", "B"), 0.2, packed=None)
    assert type(model) is AlbertMultipleChoice and model.dropout_rate == 0.2
