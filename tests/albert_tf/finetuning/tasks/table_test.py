"""The table of tasks: their names, classes, splits and scores, and files of one's own."""

import dataclasses

import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.table import (
    TASKS,
    Classes,
    Columns,
    get_task,
    own_classes,
    own_numbers,
)
from albert_tf.metrics import SCORED_GLUE_TASKS

NLI = ("contradiction", "entailment", "neutral")
LABELS = {
    "cola": ("0", "1"), "sst-2": ("0", "1"), "mrpc": ("0", "1"), "sts-b": (), "qqp": ("0", "1"),
    "mnli": NLI, "qnli": ("entailment", "not_entailment"), "rte": ("entailment", "not_entailment"),
    "wnli": ("0", "1"), "ax": NLI, "race": ("A", "B", "C", "D"), "boolq": ("false", "true"),
    "cb": NLI, "copa": ("choice1", "choice2"), "tsv": None, "regression": (), "pairs": (),
}  # fmt: skip
KEYS = {"cola": "matthews_corrcoef", "sts-b": "pearson", "ax": "matthews_corrcoef"}
KEYS |= {"regression": "pearson", "pairs": "spearman"}


@pytest.mark.parametrize("name", LABELS)
def test_tasks_of_texts(name):
    task = TASKS[name]
    assert task.name == name and task.labels == LABELS[name]
    assert task.key == KEYS.get(name, "accuracy") and task.key in task.metrics
    assert task.train_split == ("" if name == "ax" else "train")
    both = ("dev_matched", "dev_mismatched")
    assert task.dev_splits == {"mnli": both, "ax": ()}.get(name, ("dev",))


def test_test_splits():
    assert TASKS["mnli"].test_splits == ("test_matched", "test_mismatched")
    assert TASKS["race"].test_splits == TASKS["ax"].test_splits == ("test",)
    assert TASKS["tsv"].test_splits == ("predict",)
    assert set(SCORED_GLUE_TASKS) <= set(TASKS)
    assert TASKS["race"].metrics == ("accuracy", "accuracy_middle", "accuracy_high")
    assert TASKS["mrpc"].metrics == ("accuracy", "f1")


def test_a_task_by_name_or_itself():
    assert get_task("cola") is TASKS["cola"] and get_task(TASKS["rte"]) is TASKS["rte"]
    with pytest.raises(UserError, match="--task=sst2 is unknown; choose one of cola, sst-2, mrpc"):
        get_task("sst2")


def test_files_of_ones_own(tmp_path):
    path = str(tmp_path / "x.tsv")
    (tmp_path / "x.tsv").write_text("q\tp\tgrade\none\ttwo\t2.5\nthree\tfour\t1\n")
    columns = Columns("q", "p", "grade")
    data = TaskData(files={"train": path, "predict": path})
    numbers = own_numbers(columns).read(data, "train")
    assert [example.label for example in numbers.examples] == [2.5, 1.0]
    classes = own_classes(Classes("q", "p", "grade"))
    train = classes.read(data, "train")
    assert train.name == "train" and [e.text_b for e in train.examples] == ["two", "four"]
    assert classes.labels_in(train) == ("1", "2.5")
    assert [e.label for e in classes.read(data, "predict").examples] == [None, None]
    some = [*train.examples, dataclasses.replace(train.examples[0], label=None)]
    assert classes.labels_in(dataclasses.replace(train, examples=some)) == ("1", "2.5")
    several = own_classes(Classes("q", "p", "grade", multi_label=True, label_separator="."))
    assert several.labels_in(several.read(data, "train")) == ("1", "2", "5")
    # The threshold of training is kept, unless another is asked for.
    assert several.as_in({"threshold": 0.3}).threshold == 0.3
    strict = own_classes(Classes("q", "p", "grade", multi_label=True, threshold=0.9))
    assert strict.as_in({"threshold": 0.3}).threshold == 0.9
