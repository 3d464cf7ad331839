"""The tasks of GLUE: their files, columns and labels; reads `<root>/CoLA/train.tsv` as examples.

Follows the processors of google-research/albert's run_classifier, with two differences noted below.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from data_pipeline.errors import UserError
from data_pipeline.finetuning.examples import Split, TextExample, check_ids
from data_pipeline.finetuning.text_files import (
    find_file,
    header_row,
    numbered_lines,
    parse_number,
    text_columns,
)

_BINARY = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_INFERENCE = ("contradiction", "entailment", "neutral")


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """A task of GLUE, as in its files.

    Attributes:
      folder: the task's folder in GLUE's root.
      text_a, text_b: columns of the texts; text_b is None for single texts.
      label: column of the label.
      labels: names of the C classes in order; a class's id is its index here, which is also its row
        in the head of a published model. None: a regression.
      splits: names of the splits; those that begin with "test" have no labels.
      file: name of the file of a split.
      header: columns of labeled files if they have no header row; None: all files have one.
      skips_short_rows: skip labeled rows with missing columns; otherwise they are errors.
    """

    folder: str
    text_a: str
    text_b: str | None
    label: str
    labels: tuple[str, ...] | None
    splits: tuple[str, ...] = ("train", "dev", "test")
    file: str = "{split}.tsv"
    header: tuple[str, ...] | None = None
    skips_short_rows: bool = False


GLUE_TASKS = {
    "cola": GlueTask(
        "CoLA", "sentence", None, "label", _BINARY, header=("source", "label", "mark", "sentence")
    ),
    "sst-2": GlueTask("SST-2", "sentence", None, "label", _BINARY),
    "mrpc": GlueTask("MRPC", "#1 String", "#2 String", "Quality", _BINARY),
    "sts-b": GlueTask("STS-B", "sentence1", "sentence2", "score", None),
    # The official training file has three rows without their last columns.
    "qqp": GlueTask(
        "QQP", "question1", "question2", "is_duplicate", _BINARY, skips_short_rows=True
    ),
    # One training split, two evaluations. The annotators' votes (label1 ...) are not the label.
    "mnli": GlueTask(
        *("MNLI", "sentence1", "sentence2", "gold_label", _INFERENCE),
        splits=("train", "dev_matched", "dev_mismatched", "test_matched", "test_mismatched"),
    ),
    "qnli": GlueTask("QNLI", "question", "sentence", "label", _ENTAILMENT),
    "rte": GlueTask("RTE", "sentence1", "sentence2", "label", _ENTAILMENT),
    "wnli": GlueTask("WNLI", "sentence1", "sentence2", "label", _BINARY),
    # Predicted by a model of MNLI; the labels are not published.
    "ax": GlueTask(
        *("diagnostic", "sentence1", "sentence2", "label", _INFERENCE),
        splits=("test",),
        file="diagnostic.tsv",
    ),
}


def read_glue(task: str, data_dir: str, split: str) -> Split[TextExample]:
    """The examples of a split in the order of the file; those of a test split have no labels.

    `data_dir` is GLUE's root, or the task's own folder.
    """
    if task not in GLUE_TASKS:
        raise UserError(f"GLUE has no task {task!r}; choose one of {', '.join(GLUE_TASKS)}.")
    spec = GLUE_TASKS[task]
    if split not in spec.splits:
        raise UserError(f"{task} has no split {split!r}; choose one of {', '.join(spec.splits)}.")
    path = find_file(data_dir, spec.folder, [spec.file.format(split=split)])
    skipped: list[int] = []
    examples = list(_examples(spec, path, split, skipped))
    if not examples:
        raise UserError(f"{path} holds no example; download the data of {task} again.")
    check_ids(examples)
    return Split(split, examples, tuple(skipped))


def _examples(spec: GlueTask, path: str, split: str, skipped: list[int]) -> Iterator[TextExample]:
    """The examples of a file; the numbers of skipped lines are added to `skipped`."""
    is_labeled = not split.startswith("test")
    lines = numbered_lines(path)
    header = list(spec.header) if is_labeled and spec.header else header_row(lines)
    # The reference uses column numbers, so it drops the first example of a file without a header
    # row. Here columns are found by their names in the header, and such a file is an error.
    places = text_columns(
        path, header, spec.text_a, spec.text_b, spec.label if is_labeled else None
    )
    text_a, text_b, label = places
    num_needed = 1 + max(place for place in places if place is not None)
    has_index = header[0] in ("index", "id")
    for line, row in lines:
        # Quotes have no special meaning: many rows have an odd number of them.
        fields = row.split("\t")
        if len(fields) < num_needed:
            if is_labeled and spec.skips_short_rows:
                skipped.append(line)
                continue
            raise UserError(
                f"{path}:{line}: expected at least {num_needed} tab-separated columns, found "
                f"{len(fields)}. Repair or remove the row."
            )
        yield TextExample(
            # The reference counts rows from 0, including the header row: line 2 is "train-1".
            guid=fields[0] if has_index else f"{split}-{line - 1}",
            text_a=fields[text_a],
            text_b=None if text_b is None else fields[text_b],
            label=None if label is None else _label(spec, fields[label], f"{path}:{line}"),
            source=path,
            line=line,
        )


def _label(spec: GlueTask, text: str, place: str) -> str | float:
    """The name of a class as written, or a number: "0" -> "0", "3.800" -> 3.8."""
    if spec.labels is None:
        return parse_number(text, place)
    # Unlike in the reference, labels are not normalized.
    if text not in spec.labels:
        raise UserError(
            f"{place}: the label (column {spec.label!r}) is {text!r}, not one of "
            f"{', '.join(spec.labels)}."
        )
    return text
