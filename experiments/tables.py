"""Tables of experiments: CSV files with one row per run, and Markdown tables in documents."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.tables import read_csv
from data_pipeline.errors import UserError


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file; empty if it does not exist."""
    return read_csv(path) if path.exists() else []


def append_row(path: Path, row: Mapping[str, object]) -> None:
    """Appends a row to a CSV file; the first row determines the header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = read_rows(path)
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0] if rows else row), lineterminator="\n")
        if not rows:
            writer.writeheader()
        writer.writerow(row)


def markdown_table(rows: Sequence[dict[str, str]]) -> str:
    """Rows as a Markdown table with their keys as header; all but the first column are numbers.

    Raises UserError if there are none.
    """
    if not rows:
        raise UserError("There are no finished runs, so there is no table.")
    names = list(rows[0])
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *(list(row.values()) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def replace_table(document: Path, name: str, table: str) -> None:
    """Writes a table between its marks, <!-- table: NAME --> and <!-- end of table -->."""
    text = document.read_text(encoding="utf-8")
    begin, end = f"<!-- table: {name} -->\n", "<!-- end of table -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise UserError(f"{document} has no place for a table: {begin.strip()} ... {end}.")
    replaced = pattern.sub(lambda _: f"{begin}\n{table}\n{end}", text, count=1)
    document.write_text(replaced, encoding="utf-8")
