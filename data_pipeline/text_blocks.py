"""Corpus files to blocks of whole documents, cut the same way however many processes work on them.

A block is what one worker turns into records at once. It ends where a document ends, and holds
parts of several files when they are small. Files are divided into groups first, so that each group
can be read on its own, by another machine if need be.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from data_pipeline import storage, text_streams
from data_pipeline.errors import UserError
from data_pipeline.text_streams import compression, text_bytes

INPUT_FORMATS = ("auto", "lines", "paragraphs", "jsonl", "parquet", "wikiextractor")
MAX_BLOCK_BYTES, MIN_BLOCK_BYTES, BLOCKS = 32 << 20, 1 << 20, 32
MAX_LINE_BYTES, MAX_JSON_BYTES, MAX_DOCUMENT_BYTES = 1 << 20, 32 << 20, 16 << 20
_SAMPLE_LINES = 1000
# A sentence's end with more behind it; Chinese and Japanese leave no space between the two.
_SENTENCE_END_INSIDE = re.compile(
    r"""[.!?。！？]["'”’)\]]*\s+[^\W\d_a-z]|[。！？]["'”’」』）)\]]*[^\s"'”’」』）)\]。！？]"""
)


@dataclasses.dataclass(frozen=True)
class TextPart:
    """Consecutive lines of one file.

    Attributes:
      path: the file.
      input_format: one of INPUT_FORMATS but "auto" and "parquet", whose rows are jsonl.
      first_line: number of the first line, from 1.
      content: the lines as they are stored, without a byte order mark.
      problems: ("file:line", what was wrong) of what was met while reading.
    """

    path: str
    input_format: str
    first_line: int
    content: bytes
    problems: Sequence[tuple[str, str]] = ()


@dataclasses.dataclass(frozen=True)
class TextBlock:
    """Whole documents, at most some MAX_BLOCK_BYTES + MAX_DOCUMENT_BYTES of them.

    Attributes:
      group, index: number of the group of files, and of the block in it, from 0.
      parts: the text.
      stored_bytes: what reading it took from the (compressed) files.
    """

    group: int
    index: int
    parts: Sequence[TextPart]
    stored_bytes: int

    @property
    def name(self) -> str:
        """Sorts in the order of the corpus."""
        return f"{self.group:05d}-{self.index:05d}"

    @property
    def text_bytes(self) -> int:
        """Bytes of text."""
        return sum(len(part.content) for part in self.parts)


def match_files(patterns: Sequence[str] | str) -> list[str]:
    """Paths for glob patterns (a sequence, or one string with commas), sorted within a pattern.

    Raises:
      UserError: nothing matches, or a folder matches.
    """
    if isinstance(patterns, (str, os.PathLike)):
        patterns = [part.strip() for part in os.fspath(patterns).split(",")]
    files: dict[str, None] = {}
    for pattern in filter(None, map(os.fspath, patterns)):
        matches = [pattern] if storage.exists(pattern) else storage.match(pattern)
        if not matches:
            raise UserError(f"No file matches {pattern!r}; give an existing text file or pattern.")
        for path in matches:
            if storage.is_folder(path):
                raise UserError(f"{path} is a folder; give the files in it, as in {path}/*.txt.")
            files[path] = None
    if not files:
        raise UserError("No input file is named; give at least one file or pattern.")
    return list(files)


def automatic_block_bytes(total_text_bytes: float) -> int:
    """A BLOCKS-th of the corpus, between MIN_BLOCK_BYTES and MAX_BLOCK_BYTES."""
    return int(min(MAX_BLOCK_BYTES, max(MIN_BLOCK_BYTES, total_text_bytes / BLOCKS)))


def group_files(files: Iterable[str], block_bytes: int) -> list[list[str]]:
    """Consecutive files in groups: as many as fill a block; a large file is alone."""
    groups: list[list[str]] = []
    room = 0.0
    for path in files:
        size = text_bytes(path)
        if not groups or size > room:
            groups.append([])
            room = block_bytes
        groups[-1].append(path)
        room -= size
    return groups


class _Reader(text_streams.TextStream):
    """One file, in lines; use as a context manager."""

    def __init__(self, path: str, text_field: str = "text"):
        super().__init__(path, text_field)
        # What was read, and how much of it is used.
        self._ahead, self._place = self.read(3).removeprefix(b"\xef\xbb\xbf"), 0

    def read_line(self, limit: int) -> bytes:
        """The next line with its end, or a part of `limit` bytes of it; nothing at the end."""
        stop = self._place + limit
        end = self._ahead.find(b"\n", self._place, stop) + 1 or min(stop, len(self._ahead))
        line, self._place = self._ahead[self._place : end], end
        if not line.endswith(b"\n") and len(line) < limit:
            line += self.readline(limit - len(line))
        return line

    def read_lines(self, size: int, limit: int) -> bytes:
        """Many whole lines at once, about `size` bytes; nothing when a line is beyond `limit`."""
        ahead = self._ahead[self._place :]
        ahead += self.read(max(0, size - len(ahead)))
        ends = np.flatnonzero(np.frombuffer(ahead, np.uint8) == ord("\n")) + 1
        if not len(ends) or np.diff(ends, prepend=0).max() >= limit:
            self._ahead, self._place = ahead, 0
            return b""
        self._ahead, self._place = ahead[ends[-1] :], 0
        return ahead[: ends[-1]]


def detect_format(path: str, text_field: str = "text") -> str:
    """What "auto" means for a file.

    parquet for a Parquet file; jsonl for *.jsonl and *.json, compressed or not; wikiextractor when
    the text starts with "<doc "; otherwise paragraphs when more than half of the first 1,000 lines
    with text hold the end of a sentence inside, else lines.
    """
    with _Reader(path, text_field) as reader:
        if reader.is_parquet:
            return "parquet"
        if path.removesuffix(compression(path)).endswith((".jsonl", ".json")):
            return "jsonl"
        lines = iter(lambda: reader.read_line(MAX_LINE_BYTES), b"")
        sample = list(itertools.islice(filter(bytes.strip, lines), _SAMPLE_LINES))
    if sample and sample[0].lstrip().startswith(b"<doc "):
        return "wikiextractor"
    inside = sum(
        bool(_SENTENCE_END_INSIDE.search(line.decode("utf-8", errors="replace"))) for line in sample
    )
    return "paragraphs" if inside * 2 > len(sample) else "lines"


class _PartBuilder:
    """Collects the lines of one file; knows where documents end."""

    def __init__(self, path: str, input_format: str):
        self.path, self.input_format = path, input_format
        self.next_line = 1
        self.ends_document, self.has_text = True, False
        self.in_long_line = False
        self._rest = b""
        self.limit = MAX_JSON_BYTES if input_format == "jsonl" else MAX_LINE_BYTES
        self._restart()

    def _restart(self) -> None:
        self._lines: list[bytes] = []
        self._problems: list[tuple[str, str]] = []
        self._first_line = self.next_line
        self.bytes = 0

    def add_lines(self, lines: bytes) -> None:
        """Whole lines, none longer than the limit."""
        self._lines.append(lines)
        self.bytes += len(lines)
        self.next_line += lines.count(b"\n")
        self.has_text = self.has_text or not lines.isspace()
        self._see_end(lines[lines.rfind(b"\n", 0, -1) + 1 :])

    def _see_end(self, line: bytes) -> None:
        """Notes whether a document ends with this line, the last one so far."""
        if self.input_format == "jsonl":
            self.ends_document = True
        elif self.input_format == "wikiextractor":
            self.ends_document = line.lstrip().startswith(b"</doc>")
        else:
            self.ends_document = not line.strip()

    def add(self, line: bytes) -> None:
        """One line, or a part of a line that is longer than the limit."""
        is_whole = line.endswith(b"\n") or len(line) < self.limit
        if self.in_long_line or not is_whole:
            line = self._long_line(line, is_whole)
        line, self._rest = self._rest + line, b""
        if not is_whole and line:
            line = self._cut_at_space(line)
        self._lines.append(line)
        self.bytes += len(line)
        self.next_line += 1 if is_whole else 0
        self._see_end(line)
        self.ends_document &= is_whole
        self.has_text = self.has_text or not line.isspace()

    def _long_line(self, line: bytes, is_whole: bool) -> bytes:
        if not self.in_long_line:
            action = "skipped" if self.input_format == "jsonl" else "divided"
            self._report(f"line longer than {self.limit >> 20} MB, {action}")
        self.in_long_line = not is_whole
        if self.input_format != "jsonl":
            return line
        return b"\n" if is_whole else b""

    def _cut_at_space(self, line: bytes) -> bytes:
        """What comes before the last space; the rest is kept for the next part."""
        cut = line.rfind(b" ") + 1
        if not cut:  # One endless word: at least no character is cut.
            cut = len(line)
            while line[cut - 1] & 0xC0 == 0x80:
                cut -= 1
            cut -= 1
        self._rest = line[cut:]
        return line[:cut]

    def _report(self, problem: str) -> None:
        self._problems.append((f"{self.path}:{self.next_line}", problem))

    def take(self, final: bool) -> TextPart:
        """All lines since the last call."""
        if final:
            self._lines.append(self._rest)
            if not self.has_text:
                self._problems.append((self.path, "file without text"))
        elif not self.ends_document:
            self._report(f"document longer than {MAX_DOCUMENT_BYTES >> 20} MB, divided")
        part = TextPart(
            self.path, self.input_format, self._first_line, b"".join(self._lines), self._problems
        )
        self._restart()
        return part


def _check_format(reader: _Reader, input_format: str) -> None:
    if reader.is_parquet != (input_format == "parquet"):
        found = "is a" if reader.is_parquet else "is no"
        raise UserError(
            f"{reader.path} {found} Parquet file, but --input_format={input_format} is given; "
            "leave it at auto."
        )


def read_blocks(
    group: int,
    files: Sequence[str],
    block_bytes: int,
    input_format: str = "auto",
    text_field: str = "text",
) -> Iterator[TextBlock]:
    """The blocks of one group of files: a function of the files and `block_bytes` only.

    Args:
      group: number of the group.
      files: its files, see `group_files`.
      block_bytes: a block ends with the document in which it reaches so many bytes.
      input_format: one of INPUT_FORMATS.
      text_field: column of Parquet files that holds the text; their rows become jsonl.

    Raises:
      UserError: a file that is no text, UTF-16 or damaged.
    """
    numbers = itertools.count()
    parts: list[TextPart] = []
    in_block = stored = 0
    for path in files:
        kind = detect_format(path, text_field) if input_format == "auto" else input_format
        builder = _PartBuilder(path, "jsonl" if kind == "parquet" else kind)
        with _Reader(path, text_field) as reader:
            _check_format(reader, kind)
            while True:
                room = block_bytes - in_block - builder.bytes
                lines = b""
                if room > 0 and not builder.in_long_line:
                    lines = reader.read_lines(room, builder.limit)
                if lines:
                    builder.add_lines(lines)
                else:
                    line = reader.read_line(builder.limit)
                    if not line:
                        break
                    builder.add(line)
                size = in_block + builder.bytes
                if size >= block_bytes and (
                    builder.ends_document or size >= block_bytes + MAX_DOCUMENT_BYTES
                ):
                    parts.append(builder.take(final=False))
                    stored += reader.take_stored_bytes()
                    yield TextBlock(group, next(numbers), parts, stored)
                    parts, in_block, stored = [], 0, 0
            in_block += builder.bytes
            parts.append(builder.take(final=True))
            stored += reader.take_stored_bytes()
    if any(part.content or part.problems for part in parts):
        yield TextBlock(group, next(numbers), parts, stored)
