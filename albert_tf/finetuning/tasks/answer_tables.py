"""Predictions next to their texts, as a table for people and for spreadsheets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from albert_tf.errors import UserError
from data_pipeline.files import atomic_files, storage

# All characters that end a cell or a line for some program, U+2028 included.
_SEPARATORS = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")


def one_cell(text: str) -> str:
    """A text in which each sequence of tabs and line ends is replaced by one space.

    "a\\tb\\r\\nc" -> "a b c". Quotes stay: these tables have no quoting.
    """
    return _SEPARATORS.sub(" ", text)


def write_predictions(
    path: str,
    ids: Sequence[str | int],
    texts: Mapping[str, Sequence[str]],
    predictions: Sequence[str | float],
    *,
    labels: Sequence[str | float] | None = None,
    probabilities: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """Writes a tab-separated table with a header row, atomically: a row for each of N examples.

    Columns: id, the texts, label where it is known, prediction, and a probability for each class:

        id  sentence        label  prediction  p(0)      p(1)
        7   They drank tea  1      1           0.020000  0.980000

    Args:
      texts: name of a column -> its N texts.
      predictions: predicted labels, or numbers.
      labels: the right ones; None: they are not known.
      probabilities: class -> its N probabilities; None: the predictions are numbers.
    """
    columns: list[tuple[str, Sequence]] = [("id", ids), *texts.items()]
    if labels is not None:
        columns.append(("label", labels))
    columns.append(("prediction", predictions))
    for name, values in (probabilities or {}).items():
        columns.append((f"p({name})", values))
    names = [one_cell(name) for name, _ in columns]
    rows = zip(*([_cell(value) for value in values] for _, values in columns), strict=True)
    text = "".join("\t".join(row) + "\n" for row in [names, *rows])
    atomic_files.write_text(path, text)


def read_predictions(path: str) -> list[str]:
    """The column `prediction` of a table that `write_predictions` wrote."""
    rows = storage.read_bytes(path).decode("utf-8").removesuffix("\n").split("\n")
    header, *cells = [row.split("\t") for row in rows]
    remedy = "Predict again with run_finetuning --mode=predict."
    if "prediction" not in header:
        raise UserError(f"{path}:1: expected a column `prediction`; received {rows[0]!r}. {remedy}")
    for line, row in enumerate(cells, 2):
        if len(row) != len(header):
            raise UserError(
                f"{path}:{line}: expected {len(header)} cells; received {len(row)}. {remedy}"
            )
    column = header.index("prediction")
    return [row[column] for row in cells]


def _cell(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, (float, np.floating)) else one_cell(str(value))
