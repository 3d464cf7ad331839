"""The table of fine-tuning tasks, by the names of `--task`. A new task is a line in `TASKS`."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.base import Task
from albert_tf.finetuning.tasks.choices import MultipleChoiceTask
from albert_tf.finetuning.tasks.squad import SQUAD_TASKS
from albert_tf.finetuning.tasks.tagging import TaggingTask
from albert_tf.finetuning.tasks.texts import ClassificationTask, RegressionTask
from albert_tf.metrics import SCORERS
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.glue import GLUE_TASKS, read_glue
from data_pipeline.finetuning.race import read_race
from data_pipeline.finetuning.superglue import (
    BOOLQ_LABELS,
    CB_LABELS,
    read_boolq,
    read_cb,
    read_copa,
)
from data_pipeline.finetuning.tagging import read_tagged, read_tagged_folder
from data_pipeline.finetuning.tsv import read_tsv


def _glue(name: str) -> Task:
    """A task of GLUE."""
    spec, scorer = GLUE_TASKS[name], SCORERS[name]
    splits: dict[str, Any] = {
        "dev_splits": tuple(split for split in spec.splits if split.startswith("dev")),
        "test_splits": tuple(split for split in spec.splits if split.startswith("test")),
        "train_split": "train" if "train" in spec.splits else "",
    }
    reader = functools.partial(read_glue, name)
    if spec.labels is None:
        return RegressionTask(name, reader, scorer, **splits)
    return ClassificationTask(name, reader, spec.labels, scorer, **splits)


def own_classes(
    text_column: str = "text", pair_column: str | None = None, label_column: str = "label"
) -> ClassificationTask:
    """Classes in TSV files of one's own, whose header rows have these names.

    Args:
      pair_column: None: the examples are single texts.
      label_column: files to be predicted need none.
    """
    own_files = _own_files(text_column, pair_column, label_column, False)
    return ClassificationTask("tsv", None, None, SCORERS["tsv"], **own_files)


def own_numbers(
    text_column: str = "text", pair_column: str | None = None, label_column: str = "label"
) -> RegressionTask:
    """Numbers in TSV files of one's own; see `own_classes`."""
    own_files = _own_files(text_column, pair_column, label_column, True)
    return RegressionTask("regression", None, SCORERS["regression"], **own_files)


def _own_files(
    text_column: str, pair_column: str | None, label_column: str, is_regression: bool
) -> dict[str, Any]:
    """The fields of a task of files with these columns."""

    def read(path: str, split: str) -> Split:
        label = None if split == "predict" else label_column
        found = read_tsv(path, text_column, pair_column, label, is_regression)
        return dataclasses.replace(found, name=split)

    columns = {
        "text_column": text_column,
        "pair_column": pair_column,
        "label_column": label_column,
    }
    return {"file_reader": read, "test_splits": ("predict",), "columns": columns}


TASKS: dict[str, Task] = {
    **{name: _glue(name) for name in GLUE_TASKS},
    **{name: task() for name, task in SQUAD_TASKS.items()},
    "race": MultipleChoiceTask("race", read_race, ("A", "B", "C", "D"), SCORERS["race"]),
    "boolq": ClassificationTask("boolq", read_boolq, BOOLQ_LABELS, SCORERS["boolq"]),
    "cb": ClassificationTask("cb", read_cb, CB_LABELS, SCORERS["cb"]),
    "copa": MultipleChoiceTask("copa", read_copa, ("choice1", "choice2"), SCORERS["copa"]),
    "tsv": own_classes(),
    "regression": own_numbers(),
    "tagging": TaggingTask(
        "tagging", read_tagged_folder, None, SCORERS["tagging"], file_reader=read_tagged
    ),
}


# Tasks whose files have columns by names of one's own -> makes the task of these names.
OWN_FILES = {"tsv": own_classes, "regression": own_numbers}


def get_task(task: str | Task) -> Task:
    """A task by name; a task of one's own stays what it is."""
    if isinstance(task, Task):
        return task
    if task not in TASKS:
        raise UserError(f"--task={task} is unknown; choose one of {', '.join(TASKS)}.")
    return TASKS[task]
