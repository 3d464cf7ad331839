"""The table of fine-tuning tasks: `--task` by name. A new task is a line in `TASKS`."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from albert_tf.errors import UserError
from albert_tf.finetuning.choice_tasks import multiple_choice
from albert_tf.finetuning.spec import FineTuning
from albert_tf.finetuning.squad_tasks import SQUAD_TASKS, squad
from albert_tf.finetuning.tagging_tasks import tagging
from albert_tf.finetuning.text_tasks import classification, regression
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
from data_pipeline.finetuning.tsv import class_names, read_tsv


def _glue(name: str) -> FineTuning:
    """A task of GLUE."""
    spec, scorer = GLUE_TASKS[name], SCORERS[name]
    splits = {
        "dev_splits": tuple(split for split in spec.splits if split.startswith("dev")),
        "test_splits": tuple(split for split in spec.splits if split.startswith("test")),
        "train_split": "train" if "train" in spec.splits else "",
    }
    reader = functools.partial(read_glue, name)
    if spec.labels is None:
        return regression(name, reader, scorer, **splits)
    return classification(name, reader, spec.labels, scorer, **splits)


def own_classes(
    text_column: str = "text", pair_column: str | None = None, label_column: str = "label"
) -> FineTuning:
    """Classes in TSV files of one's own, whose header rows have these names.

    Args:
      text_column: name of the column of the (first) text.
      pair_column: name of the column of the second text; None: there is none.
      label_column: name of the column of the label; files to be predicted need none.
    """
    return classification(
        "tsv",
        None,
        None,
        SCORERS["tsv"],
        find_labels=_labels_of,
        **_own_files(text_column, pair_column, label_column, False),
    )


def own_numbers(
    text_column: str = "text", pair_column: str | None = None, label_column: str = "label"
) -> FineTuning:
    """Numbers in TSV files of one's own; see `own_classes`."""
    return regression(
        "regression",
        None,
        SCORERS["regression"],
        **_own_files(text_column, pair_column, label_column, True),
    )


def _own_files(
    text_column: str, pair_column: str | None, label_column: str, is_regression: bool
) -> dict[str, Any]:
    """The fields of a FineTuning of files with these columns."""

    def read(path: str, split: str) -> Split:
        label = None if split == "predict" else label_column
        found = read_tsv(path, text_column, pair_column, label, is_regression)
        return dataclasses.replace(found, name=split)

    columns = {
        "text_column": text_column,
        "pair_column": pair_column,
        "label_column": label_column,
    }
    return {"file_reader": read, "test_splits": ("predict",), "data_settings": columns}


def _labels_of(split: Split) -> list[str]:
    labels = (example.label for example in split.examples if example.label is not None)
    return class_names(labels, split.source)  # An example without one is refused by its line.


TASKS: dict[str, FineTuning] = {
    **{name: _glue(name) for name in GLUE_TASKS},
    **{name: squad(name) for name in SQUAD_TASKS},
    "race": multiple_choice("race", read_race, ("A", "B", "C", "D"), SCORERS["race"]),
    "boolq": classification("boolq", read_boolq, BOOLQ_LABELS, SCORERS["boolq"]),
    "cb": classification("cb", read_cb, CB_LABELS, SCORERS["cb"]),
    "copa": multiple_choice("copa", read_copa, ("choice1", "choice2"), SCORERS["copa"]),
    "tsv": own_classes(),
    "regression": own_numbers(),
    "tagging": tagging("tagging", SCORERS["tagging"]),
}


# Tasks whose files have columns by names of one's own -> makes the task of these names.
OWN_FILES = {"tsv": own_classes, "regression": own_numbers}


def get_task(task: str | FineTuning) -> FineTuning:
    """A task by name; a FineTuning of one's own stays what it is.

    Raises:
      UserError: there is no task of that name.
    """
    if isinstance(task, FineTuning):
        return task
    if task not in TASKS:
        raise UserError(f"--task={task} is unknown; choose one of {', '.join(TASKS)}.")
    return TASKS[task]
