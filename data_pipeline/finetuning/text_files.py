"""Lines, columns and JSON fields of text files; every error names the file and the line."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from data_pipeline.corpus.sentences import replace_surrogates
from data_pipeline.errors import UserError, warn_once
from data_pipeline.files import storage

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def find_file(data_dir: str, folder: str, names: Sequence[str]) -> str:
    """The path of a task's file, in a benchmark's root or in the task's own folder.

    ("glue", "CoLA", ["dev.tsv"]) -> "glue/CoLA/dev.tsv", or "glue/dev.tsv" if only that exists.
    """
    data_dir = os.fspath(data_dir)
    relative = [os.path.join(folder, name) for name in names] + list(names)
    for path in (os.path.join(data_dir, path) for path in relative):
        if storage.exists(path):
            return path
    raise UserError(
        f"{data_dir} has none of the files {', '.join(relative)}. Give the folder of the whole "
        f"benchmark, which contains {folder}, or the folder of the task."
    )


def numbered_lines(path: str) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file that are not empty, with their numbers from 1.

    A byte order mark and line ends, LF or CR LF, are removed:
    b"\\xef\\xbb\\xbfa\\r\\n\\nb" -> (1, "a"), (3, "b").
    """
    path = os.fspath(path)
    if storage.is_folder(path):
        raise UserError(f"{path} is a folder; give a file.")
    if not storage.exists(path):
        raise UserError(f"The file {path} does not exist.")
    with storage.open_file(path, "rb") as file:
        # One line at a time: MNLI's training file has several hundred megabytes of parses.
        for number, content in enumerate(file, start=1):
            try:
                line = content.decode("utf-8" if number > 1 else "utf-8-sig")
            except UnicodeDecodeError:
                raise UserError(
                    f"{path}:{number}: the text is not UTF-8; convert the file."
                ) from None
            line = line.rstrip("\r\n")
            if line:
                yield number, line


def header_row(lines: Iterator[tuple[int, str]]) -> list[str]:
    """The column names in the first of the numbered lines; the others remain in the iterator."""
    for _, line in lines:
        return line.split("\t")
    return []


def column_index(path: str, header: list[str], name: str, meaning: str) -> int:
    """The index of a column in the header of a file; UserError unless it occurs exactly once.
    `meaning` says what the column is read as, such as "label".
    """
    if name not in header and len(header) == 1 and name in header[0].split(","):
        raise UserError(
            f"{path}:1: the columns are separated by commas, not by tabs. Convert it to TSV: "
            "python -c \"import csv, sys; [print(*(' '.join(f.split()) for f in row), sep='\\t') "
            f'for row in csv.reader(sys.stdin)]" < {path} > NEW.tsv'
        )
    if name not in header:
        found = ", ".join(header) or "nothing"
        raise UserError(
            f"{path}:1: no column {name!r} ({meaning}); the first row names {found:.200}. Is it "
            "the file of another task, or is its header row missing?"
        )
    if header.count(name) > 1:
        raise UserError(
            f"{path}:1: {header.count(name)} columns are named {name!r} ({meaning}). Rename all "
            "but one."
        )
    return header.index(name)


def text_columns(
    path: str, header: list[str], text: str, pair: str | None, label: str | None
) -> tuple[int, int | None, int | None]:
    """The indices of the columns of the text, the second text and the label; None if not named."""
    return (
        column_index(path, header, text, "text"),
        column_index(path, header, pair, "second text") if pair else None,
        column_index(path, header, label, "label") if label else None,
    )


def parse_number(text: str, place: str) -> float:
    """A label as a finite number: "3.800" -> 3.8."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{place}: expected a number as label; found {text!r}.")
    return value


def parse_json(text: str, path: str) -> Any:
    """The value of a JSON text, with U+FFFD in place of each unpaired surrogate.

    Raises ValueError if the text is not JSON. Unpaired surrogates cause a warning on stderr.
    """
    # JSON may hold "\ud83d" without its other half, but UTF-8 may not: answers with it could not be
    # written. One character replaces one, so that offsets in a text do not change.
    value = json.loads(text)
    if not _SURROGATE_ESCAPE.search(text):
        return value
    written = json.dumps(value, ensure_ascii=False)
    repaired = replace_surrogates(written)
    if repaired == written:  # All surrogates were in pairs, which json.loads has joined.
        return value
    warn_once(f"{path}: halves of surrogate pairs, such as \\ud83d alone, are read as U+FFFD")
    return json.loads(repaired)


def json_objects(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with one JSON object on each line, with their line numbers."""
    for number, line in numbered_lines(path):
        try:
            value = parse_json(line, path)
        except ValueError as error:
            raise UserError(
                f"{path}:{number}: expected one JSON object per line; this line is not: {error}."
            ) from None
        if not isinstance(value, dict):
            raise UserError(
                f"{path}:{number}: expected a JSON object in braces; received {line[:40]!r}."
            )
        yield number, value


def text_field(record: dict[str, Any], name: str, place: str) -> str:
    """The string in a field of a JSON object; `place` is its file and line, for the message."""
    return _field(record, name, place, str, "a text")


def list_field(record: dict[str, Any], name: str, place: str) -> list[Any]:
    """The list in a field of a JSON object; see `text_field`."""
    return _field(record, name, place, list, "a list")


def _field(record: dict[str, Any], name: str, place: str, kind: type, expected: str) -> Any:
    value = record.get(name)
    if isinstance(value, kind):
        return value
    if name in record:
        raise UserError(f"{place}: expected {expected} in the field {name!r}; found {value!r:.40}.")
    found = ", ".join(record) or "none"
    raise UserError(
        f"{place}: expected a field {name!r} with {expected}; found the fields {found:.200}."
    )
