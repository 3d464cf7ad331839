"""The tables of docs/weights.md, and their places in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from data_pipeline.errors import UserError


def markdown_table(rows: Sequence[dict[str, str]]) -> str:
    """Rows of one kind as a table, their keys as its head; all but the first column are numbers."""
    names = list(rows[0])
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *(list(row.values()) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def replace_table(document: Path, name: str, table: str) -> None:
    """Puts a table between its marks, <!-- table: NAME --> and <!-- end of table -->."""
    text = document.read_text(encoding="utf-8")
    begin, end = f"<!-- table: {name} -->\n", "<!-- end of table -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise UserError(f"{document} has no place for a table: {begin.strip()} ... {end}.")
    replaced = pattern.sub(lambda _: f"{begin}\n{table}\n{end}", text, count=1)
    document.write_text(replaced, encoding="utf-8")
