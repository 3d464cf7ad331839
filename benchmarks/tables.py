"""Rows of a benchmark, printed and written as CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path


def print_rows(rows: Sequence[dict[str, object]]) -> None:
    """A table."""
    widths = {name: max(len(str(row[name])) for row in [*rows, {name: name}]) for name in rows[0]}
    for row in [{name: name for name in widths}, *rows]:
        print("  ".join(f"{row[name]!s:{width}}" for name, width in widths.items()))
    print(flush=True)


def write_csv(path: Path, rows: Sequence[dict[str, object]]) -> None:
    """Writes rows with a header, and the folder if it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
