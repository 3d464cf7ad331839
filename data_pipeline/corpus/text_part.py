"""Consecutive lines of one file, decoded from bytes to text. A few bad lines are repaired; files of
mostly bad lines are refused.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Sequence

from data_pipeline.corpus.report import ReadReport
from data_pipeline.errors import UserError

# Bytes that text does not contain: control characters except whitespace and terminal escapes.
_CONTROLS = bytes([*range(0x09), *range(0x0E, 0x1B), 0x7F])
_FEW_BAD_LINES = 2
_KILOBYTES = re.compile(rb"(?s).{1,1000}[\x80-\xbf]{0,3}")  # Cuts no UTF-8 character.


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
        text = decode_clean(self.content)
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


def decode_clean(content: bytes) -> str | None:
    """The decoded text of valid UTF-8 without control characters; None if it needs repair."""
    with contextlib.suppress(UnicodeDecodeError):
        text = content.decode("utf-8")
        if len(content.translate(None, _CONTROLS)) == len(content):
            return text
    return None


def _is_not_utf8(line: bytes) -> bool:
    return line.decode("utf-8", "ignore").encode("utf-8") != line


def _has_controls(line: bytes) -> bool:
    return len(line.translate(None, _CONTROLS)) < len(line)


def _most(lines: Sequence[bytes], is_wrong: Callable[[bytes], bool]) -> str:
    """The share of wrong lines, as in "5 of 9 lines"; "" unless most, and more than a few, are."""
    # A file with few, long lines cannot have many wrong ones: its kilobytes are counted instead.
    for unit in ("lines", "kilobytes"):
        wrong = sum(map(is_wrong, lines))
        if 2 * wrong <= len(lines):
            return ""
        if wrong > _FEW_BAD_LINES:
            return f"{wrong} of {len(lines)} {unit}"
        lines = [piece for line in lines for piece in _KILOBYTES.findall(line)]
    return ""


def check_are_text(lines: Sequence[bytes], path: str, more: int = 0) -> None:
    """Raises UserError when more than a few lines, and most of the nonblank ones, are not text.
    `path` is the first of `more` + 1 files with a bad line.
    """
    lines = [line for line in lines if line.strip()]
    files = f"{path} is" if not more else f"{path} (and {more} more of the files beside it) is"
    if binary := _most(lines, _has_controls):
        raise UserError(
            f"{files} not text: {binary} contain NUL bytes or control "
            "characters. Give UTF-8 text (convert UTF-16 without a byte order mark "
            "first), jsonl or Parquet files."
        )
    if wrong := _most(lines, _is_not_utf8):
        raise UserError(
            f"{files} not UTF-8: {wrong} cannot be read. If it is Latin-1, "
            f"convert it: iconv -f LATIN1 -t UTF-8 {path} > NEW (or -f GB18030, SHIFT_JIS, ...). "
            "If it is not text, leave it out."
        )


def check_small_files(parts: Sequence[TextPart]) -> None:
    """Raises UserError when most lines in the files of a block are not text. The files are checked
    together, since each may have only a line or two.
    """
    if len(parts) < 2:
        return
    unclean = [part for part in parts if decode_clean(part.content) is None]
    if unclean:
        lines = [line for part in parts for line in part.content.split(b"\n")]
        check_are_text(lines, unclean[0].path, len(unclean) - 1)
