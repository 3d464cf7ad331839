"""Reads a user's file: tab-separated columns named by a header row; labels are names or numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from data_pipeline.errors import UserError
from data_pipeline.finetuning.examples import Split, TextExample
from data_pipeline.finetuning.text_files import numbered_lines, parse_number, text_columns

# More distinct numbers than this as labels, some of them with a fraction, are not classes.
_MAX_NUMBERS = 20
_NUMBER = re.compile(r"[-+]?\d*\.?\d+")


def read_tsv(
    path: str,
    text_column: str = "text",
    pair_column: str | None = None,
    label_column: str | None = "label",
    is_regression: bool = False,
    label_separator: str | None = None,
) -> Split[TextExample]:
    """Reads a tab-separated file whose first row names the columns; quotes have no meaning.

    Empty rows are skipped; the guid of an example is its line. Labels of a regression are numbers,
    "2.50" -> 2.5; others are names, "2.50" -> "2.50". With a separator, an example has any number
    of names, "a, b" -> ("a", "b"), "" -> ().
    """
    path = os.fspath(path)
    _check_apart(text_column=text_column, pair_column=pair_column, label_column=label_column)
    lines = numbered_lines(path)
    line, row = next(lines, (1, ""))
    header = row.split("\t") if row else []
    text_a, text_b, label = text_columns(path, header, text_column, pair_column, label_column)
    examples, next_line = [], line + 1
    skipped: list[int] = []
    for line, row in lines:
        skipped += range(next_line, line)  # Empty lines.
        next_line = line + 1
        fields = row.split("\t")
        if len(fields) != len(header):
            raise UserError(
                f"{path}:{line}: expected {len(header)} tab-separated columns as in the header "
                f"row, found {len(fields)}."
            )
        examples.append(
            TextExample(
                guid=str(line),
                text_a=fields[text_a],
                text_b=None if text_b is None else fields[text_b],
                label=None
                if label is None
                else _label(fields[label], is_regression, label_separator, f"{path}:{line}"),
                source=path,
                line=line,
            )
        )
    if not examples:
        raise UserError(f"{path} holds a header row but no example.")
    return Split(os.path.basename(path), examples, tuple(skipped))


def _check_apart(**columns: str | None) -> None:
    """Raises UserError if a column is used twice, for example as text and as label."""
    flags: dict[str, str] = {}
    for flag, name in columns.items():
        if name in flags:
            raise UserError(
                f"--{flag}={name} is also the --{flags[name]}. Name another column, or leave "
                "it out."
            )
        if name is not None:
            flags[name] = flag


def _label(
    text: str, is_regression: bool, separator: str | None, place: str
) -> str | float | tuple[str, ...]:
    """A label or labels, stripped, since spaces around a label would make it a different class."""
    if separator is not None:
        return tuple(filter(None, map(str.strip, text.split(separator))))
    name = text.strip()
    if not name:
        raise UserError(f"{place}: the label is empty. Fill it in, or remove the row.")
    return parse_number(name, place) if is_regression else name


def class_names(labels: Iterable[str], source: str) -> list[str]:
    """The distinct labels, at least two, sorted (as numbers if all are integers).

    ["b", "a", "b"] -> ["a", "b"]; ["10", "9"] -> ["9", "10"].
    """
    names = set(labels)
    if odd := [name for name in names if not isinstance(name, str)]:
        raise UserError(
            f"{source}: the label {odd[0]!r} is not a class name. Read the examples as classes, "
            "or name a task that fits them (regression, or tsv with several labels)."
        )
    if not names:
        raise UserError(f"{source}: no example has a label; two different ones are needed.")
    if len(names) < 2:
        raise UserError(f"{source}: {min(names)!r} is the only label; two are needed.")
    if len(names) > _MAX_NUMBERS and all(map(_NUMBER.fullmatch, names)) and "." in "".join(names):
        raise UserError(
            f"{source}: the labels are {len(names)} different numbers such as {min(names)}, which "
            "look like values, not classes. Use regression, round them to at most "
            f"{_MAX_NUMBERS}, or name another column."
        )
    try:
        return sorted(names, key=lambda name: (int(name), name))  # "1" and "01" are two classes.
    except ValueError:
        return sorted(names)


def numbers_note(names: Sequence[str]) -> str:
    """A sentence for the user if all class names are numbers; "" otherwise."""
    # "1", "2", "3" could be grades, where 1 is nearer to 2 than to 3; classes have no order.
    if not all(map(_NUMBER.fullmatch, names)):
        return ""
    return (
        f"The labels are {len(names)} numbers from {names[0]} to {names[-1]}, treated as "
        f"{len(names)} classes without an order. If close numbers have similar meanings, use "
        "regression."
    )
