"""The table of fine-tuning tasks, by the names of `--task`. A new task is a line in `TASKS`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.base import Task
from albert_tf.finetuning.tasks.choices import MultipleChoiceTask
from albert_tf.finetuning.tasks.squad import SquadSettings, SquadTask, SquadV2Task
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
from data_pipeline.settings import Settings, setting, settings_of


def _glue(name: str) -> Task:
    """A task of GLUE."""
    spec, scorer = GLUE_TASKS[name], SCORERS[name]
    splits: dict[str, Any] = {
        "dev_splits": tuple(split for split in spec.splits if split.startswith("dev")),
        "test_splits": tuple(split for split in spec.splits if split.startswith("test")),
        "train_split": "train" if "train" in spec.splits else "",  # AX has a test set alone.
    }
    reader = functools.partial(read_glue, name)
    if spec.labels is None:
        return RegressionTask(name, reader, scorer, **splits)
    return ClassificationTask(name, reader, spec.labels, scorer, **splits)


@dataclasses.dataclass(frozen=True)
class Columns(Settings):
    """The columns of TSV files of one's own, whose first row has these names."""

    text_column: str = setting("text", "Column of the (first) text in your own files.")
    pair_column: str | None = setting(None, "Column of the second text, for pairs.")
    label_column: str = setting("label", "Column of the label.")


def own_classes(columns: Columns = Columns()) -> ClassificationTask:
    """Classes in TSV files of one's own; those to be predicted need no labels."""
    own_files = _own_files(columns, is_regression=False)
    return ClassificationTask("tsv", None, None, SCORERS["tsv"], **own_files)


def own_numbers(columns: Columns = Columns()) -> RegressionTask:
    """Numbers in TSV files of one's own; see `own_classes`."""
    own_files = _own_files(columns, is_regression=True)
    return RegressionTask("regression", None, SCORERS["regression"], **own_files)


def _own_files(columns: Columns, is_regression: bool) -> dict[str, Any]:
    """The fields of a task of files with these columns."""

    def read(path: str, split: str) -> Split:
        label = None if split == "predict" else columns.label_column
        examples = read_tsv(path, columns.text_column, columns.pair_column, label, is_regression)
        return dataclasses.replace(examples, name=split)

    by_flag = dataclasses.asdict(columns)
    return {"file_reader": read, "test_splits": ("predict",), "columns": by_flag}


TASKS: dict[str, Task] = {
    **{name: _glue(name) for name in GLUE_TASKS},
    "squad1.1": SquadTask(),
    "squad2.0": SquadV2Task(),
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


# Task with settings of its own -> their class, and a function from them to the task.
CONFIGURED: dict[str, tuple[type[Settings], Callable[[Any], Task]]] = {
    "squad1.1": (SquadSettings, lambda settings: SquadTask(settings=settings)),
    "squad2.0": (SquadSettings, lambda settings: SquadV2Task(settings=settings)),
    "tsv": (Columns, own_classes),
    "regression": (Columns, own_numbers),
}


def tasks_by_setting() -> dict[str, list[str]]:
    """Names of settings and lengths -> the tasks that they mean something to."""
    tasks: dict[str, list[str]] = {}
    for name, task in TASKS.items():
        own = [each.name for each in settings_of(CONFIGURED[name][0])] if name in CONFIGURED else []
        for each in (*task.lengths, *own):
            tasks.setdefault(each, []).append(name)
    return tasks


def get_task(task: str | Task) -> Task:
    """A task by name, a UserError for an unknown one; a task of one's own stays what it is."""
    if isinstance(task, Task):
        return task
    if task not in TASKS:
        raise UserError(f"--task={task} is unknown; choose one of {', '.join(TASKS)}.")
    return TASKS[task]
