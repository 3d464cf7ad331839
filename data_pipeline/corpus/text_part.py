"""Consecutive lines of one file, decoded from bytes to checked and repaired text."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from data_pipeline.corpus.checks import check_are_text, faultless
from data_pipeline.corpus.report import ReadReport


@dataclasses.dataclass(frozen=True)
class TextPart:
    """Consecutive lines of one file."""

    path: str
    input_format: str  # A key of formats.FORMATS.
    first_line: int  # Number of the first line, counted from 1.
    content: bytes  # The lines as they are stored, without a byte order mark.
    # ("file:line", problem) of each problem found while reading.
    problems: Sequence[tuple[str, str]] = ()

    def where(self, index: int) -> str:
        """ "file:line" of a line, counted from 0 in this part."""
        return f"{self.path}:{self.first_line + index}"

    def lines(self, report: ReadReport) -> list[str]:
        """The lines without their line ends. Bad bytes are repaired and reported; if most lines are
        bad, a UserError is raised.
        """
        text = faultless(self.content)
        if text is not None:
            return text.split("\n")
        lines = self.content.split(b"\n")
        check_are_text(lines, self.path)
        return [_decode(line, self.where(index), report) for index, line in enumerate(lines)]


def _decode(line: bytes, where: str, report: ReadReport) -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        report.add("invalid UTF-8, replaced by U+FFFD", where)
        text = line.decode("utf-8", errors="replace")
    if "\0" in text:
        report.add("NUL bytes, replaced by spaces", where)
        text = text.replace("\0", " ")
    return text


def check_small_files(parts: Sequence[TextPart]) -> None:
    """Raises UserError when most lines in the files of a block are not text. The files are checked
    together, since each may have only a line or two.
    """
    if len(parts) < 2:
        return
    faulty = [part for part in parts if faultless(part.content) is None]
    if faulty:
        lines = [line for part in parts for line in part.content.split(b"\n")]
        check_are_text(lines, faulty[0].path, len(faulty) - 1)
