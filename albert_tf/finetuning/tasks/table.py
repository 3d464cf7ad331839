"""The table of fine-tuning tasks, by the names of `--task`. A new task is a line in `TASKS`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.base import Task
from albert_tf.finetuning.tasks.choices import MultipleChoiceTask
from albert_tf.finetuning.tasks.pairs import PairTask
from albert_tf.finetuning.tasks.squad import SquadSettings, SquadTask, SquadV2Task
from albert_tf.finetuning.tasks.tagging import TaggingTask
from albert_tf.finetuning.tasks.texts import ClassificationTask, MultiLabelTask, RegressionTask
from albert_tf.metrics import SCORERS
from albert_tf.models.pairs import LOSSES
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
from data_pipeline.finetuning.text_files import header_row, numbered_lines
from data_pipeline.finetuning.tsv import read_tsv
from data_pipeline.settings import Settings, setting, settings_of


def _glue(name: str) -> Task:
    """A task of GLUE."""
    spec, scorer = GLUE_TASKS[name], SCORERS[name]
    splits: dict[str, Any] = {
        "dev_splits": tuple(split for split in spec.splits if split.startswith("dev")),
        "test_splits": tuple(split for split in spec.splits if split.startswith("test")),
        "train_split": "train" if "train" in spec.splits else "",  # AX has only a test set.
    }
    reader = functools.partial(read_glue, name)
    if spec.labels is None:
        return RegressionTask(name, reader, scorer, **splits)
    return ClassificationTask(name, reader, spec.labels, scorer, **splits)


@dataclasses.dataclass(frozen=True)
class Columns(Settings):
    """The columns of the user's own TSV files, as named in their first row."""

    text_column: str = setting("text", "Column of the (first) text in your own files.")
    pair_column: str | None = setting(None, "Column of the second text, for pairs.")
    label_column: str = setting("label", "Column of the label.")


@dataclasses.dataclass(frozen=True)
class Classes(Columns):
    """The columns of TSV files, and whether a row has one label or any number of them."""

    multi_label: bool = setting(
        False, "Learn any number of labels for each text: all in one field, which may be empty."
    )
    label_separator: str | None = setting(
        None, "Text between two labels of --multi_label; by default a comma.", expert=True
    )
    threshold: float | None = setting(
        None,
        "Lowest probability at which --multi_label predicts a label; by default the one that the "
        "model was trained with, or 0.5.",
        above=0,
        at_most=1,
        expert=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("label_separator", "threshold"):
            value = getattr(self, name)
            if value is not None and not self.multi_label:
                raise UserError(
                    f"--{name}={value} applies only to --multi_label. Give --multi_label as "
                    f"well, or leave --{name} out."
                )
        separator = self.label_separator
        if separator is not None and (not separator or set(separator) & set("\t\r\n")):
            raise UserError(
                f"--label_separator={separator!r} cannot stand in a field of a tab-separated file. "
                "Give a character that no label contains, such as ; or |."
            )


@dataclasses.dataclass(frozen=True)
class Pairs(Columns):
    """The columns of TSV files of pairs, and how vectors are learned from them."""

    pair_loss: str | None = setting(
        None,
        "Loss of --task=pairs: find the second text of a row among those of the batch (in_batch), "
        "or fit the cosine to the label (cosine); by default cosine if pairs have labels.",
        one_of=LOSSES,
        expert=True,
    )
    label_scale: float | None = setting(
        None,
        "Label that --task=pairs expects for texts of equal meaning, 5 in STS-B; by default 1, or "
        "that of the trained model.",
        above=0,
        expert=True,
    )
    text_mask_prob: float | None = setting(
        None,
        "Share of the tokens that --task=pairs hides in training; by default 0.3 where both texts "
        "of a row are the same, else 0.",
        at_most=0.9,
        expert=True,
    )


def own_classes(classes: Classes = Classes()) -> ClassificationTask:
    """Classification of the user's own TSV files; files to predict need no labels."""
    if not classes.multi_label:
        return ClassificationTask("tsv", None, None, SCORERS["tsv"], **_own_files(classes))
    separator = classes.label_separator or ","
    own_files = _own_files(classes, separator=separator)
    own_files["columns"] |= {"multi_label": True, "label_separator": separator}
    return MultiLabelTask(
        *("tsv", None, None, SCORERS["multi_label"]),
        threshold=classes.threshold,
        separator=separator,
        **own_files,
    )


def own_numbers(columns: Columns = Columns()) -> RegressionTask:
    """Regression on the user's own TSV files; see `own_classes`."""
    own_files = _own_files(columns, is_regression=True)
    return RegressionTask("regression", None, SCORERS["regression"], **own_files)


def own_pairs(pairs: Pairs = Pairs()) -> PairTask:
    """Pairs in the user's own TSV files, or single texts for training. Columns with the default
    names, `pair` and `label`, may be missing.
    """

    def read(path: str, split: str) -> Split:
        there = header_row(numbered_lines(path))
        pair, label = pairs.pair_column or "pair", pairs.label_column
        is_single = split == "train" and pairs.pair_column is None and pair not in there
        is_unknown = split == "predict" or (label == Columns.label_column and label not in there)
        columns = (pairs.text_column, None if is_single else pair, None if is_unknown else label)
        return dataclasses.replace(read_tsv(path, *columns, is_regression=True), name=split)

    return PairTask(
        *("pairs", None, SCORERS["pairs"]),
        loss=pairs.pair_loss,
        label_scale=pairs.label_scale,
        text_mask_prob=pairs.text_mask_prob,
        **{**_own_files(pairs), "file_reader": read},
    )


def _own_files(
    columns: Columns, is_regression: bool = False, separator: str | None = None
) -> dict[str, Any]:
    """The fields of a task for files with these columns, whose labels a separator may split."""

    def read(path: str, split: str) -> Split:
        label = None if split == "predict" else columns.label_column
        examples = read_tsv(
            *(path, columns.text_column, columns.pair_column, label, is_regression, separator)
        )
        return dataclasses.replace(examples, name=split)

    names = [each.name for each in settings_of(Columns)]
    by_flag = {name: getattr(columns, name) for name in names}
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
    "pairs": own_pairs(),
    "tagging": TaggingTask(
        "tagging", read_tagged_folder, None, SCORERS["tagging"], file_reader=read_tagged
    ),
}


# Task with its own settings -> their class, and a function that makes the task from them.
CONFIGURED: dict[str, tuple[type[Settings], Callable[[Any], Task]]] = {
    "squad1.1": (SquadSettings, lambda settings: SquadTask(settings=settings)),
    "squad2.0": (SquadSettings, lambda settings: SquadV2Task(settings=settings)),
    "tsv": (Classes, own_classes),
    "regression": (Columns, own_numbers),
    "pairs": (Pairs, own_pairs),
}


def tasks_by_setting() -> dict[str, list[str]]:
    """Names of settings and lengths -> the tasks that use them."""
    tasks: dict[str, list[str]] = {}
    for name, task in TASKS.items():
        own = [each.name for each in settings_of(CONFIGURED[name][0])] if name in CONFIGURED else []
        for each in (*task.lengths, *own):
            tasks.setdefault(each, []).append(name)
    return tasks


def trained_task(metadata: Mapping[str, Any]) -> Task:
    """The task of a model that was fine-tuned, by its model.json: data are read as in training."""
    name = metadata["finetuned_on"]
    if name not in CONFIGURED:
        return get_task(name)
    kind, make = CONFIGURED[name]
    stored, known = metadata.get("data_settings", {}), [each.name for each in settings_of(kind)]
    return make(kind(**{name: stored[name] for name in known if name in stored}))


def get_task(task: str | Task) -> Task:
    """A task by name, UserError for an unknown name; a Task is returned as it is."""
    if isinstance(task, Task):
        return task
    if task not in TASKS:
        raise UserError(f"--task={task} is unknown; choose one of {', '.join(TASKS)}.")
    return TASKS[task]
