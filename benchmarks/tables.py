"""Selection of a benchmark's cases by a flag; printing, writing and reading its rows as CSV."""

from __future__ import annotations

import csv
import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from data_pipeline.errors import UserError

T = TypeVar("T")
CPU_INFO = Path("/proc/cpuinfo")
# Linux's names of instruction sets that determine the speed of bfloat16 and float32 products.
INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")


def chosen(flag: str, pattern: str, named: dict[str, T]) -> dict[str, T]:
    """The parts of a benchmark whose names match a flag's pattern, in their original order.

    Args:
      flag: the flag's name for messages, for example "cases".
      pattern: the flag's value.
      named: the parts by name.

    Raises:
      UserError: no name matches, or the pattern is not a regular expression.
    """
    try:
        found = {name: part for name, part in named.items() if re.search(pattern, name)}
    except re.error as error:
        raise UserError(f"--{flag}={pattern} is not a regular expression: {error}.") from None
    if not found:
        raise UserError(f"--{flag}={pattern} matches none of: {'; '.join(named)}.")
    return found


def processor() -> str:
    """The processor on which it runs: "AMD EPYC, family 25 model 17, avx512f, 2 cores".

    A virtual machine may hide the model's name, but family and model number still identify it.
    """
    if not CPU_INFO.exists():
        return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    found = dict(re.findall(r"^([\w ]+?)\s*: (.+)$", CPU_INFO.read_text(), re.MULTILINE))
    name = found.get("model name", platform.machine())
    if "cpu family" in found:
        name += f", family {found['cpu family']} model {found['model']}"
    instructions = [name for name in INSTRUCTIONS if name in found.get("flags", "").split()]
    return ", ".join([name, *instructions, f"{os.cpu_count()} cores"])


def print_rows(rows: Sequence[dict[str, object]]) -> None:
    """Prints the processor and a table of rows."""
    print(processor())
    header: dict[str, object] = {name: name for name in rows[0]}
    widths = {name: max(len(str(row[name])) for row in [header, *rows]) for name in header}
    for row in [header, *rows]:
        print("  ".join(f"{row[name]!s:{width}}" for name, width in widths.items()))
    print(flush=True)


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, by the names in its header."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_csv(path: Path, rows: Sequence[dict[str, object]]) -> None:
    """Writes rows with a header; creates the folder if it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
