"""A text of a given size and the memory of a process, for benchmarks of whole programs."""

from __future__ import annotations

import os
from pathlib import Path

_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def text_of(source: Path, megabytes: float, path: Path) -> Path:
    """Writes the first megabytes of a text, repeated as needed, to `path`, and returns it."""
    content, size = source.read_bytes(), int(megabytes * 1e6)
    with open(path, "wb") as file:
        for start in range(0, size, len(content) + 2):
            taken = content[: size - start]
            if len(taken) < len(content):  # Whole lines, so that no character is cut.
                taken = taken[: taken.rfind(b"\n") + 1] or taken
            file.write(taken + b"\n\n")
    return path


def memory_mb(pid: int) -> float:
    """The resident memory of a process; 0 when it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_MB
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
