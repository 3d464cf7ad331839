"""Corpus files to blocks of whole documents, cut the same way however many processes work on them.

A block is what one worker turns into records at once. It ends where a document ends, and holds
parts of several files when they are small. Files are divided into groups first, so that each group
can be read on its own, by another machine if need be.
"""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import io
import itertools
import lzma
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import numpy as np

from data_pipeline import storage
from data_pipeline.errors import UserError

INPUT_FORMATS = ("auto", "lines", "paragraphs", "jsonl", "wikiextractor")
MAX_BLOCK_BYTES, MIN_BLOCK_BYTES, BLOCKS = 32 << 20, 1 << 20, 32
MAX_LINE_BYTES, MAX_JSON_BYTES, MAX_DOCUMENT_BYTES = 1 << 20, 32 << 20, 16 << 20
_COMPRESSION = {".gz": 3, ".bz2": 4, ".xz": 4, ".zst": 3.5}  # Text bytes per stored byte, roughly.
_SAMPLE_LINES = 1000
_BUFFER_BYTES = 1 << 20
_SENTENCE_END_INSIDE = re.compile(r"[.!?。！？][\"'”’)\]]*\s+[^\W\d_a-z]")


@dataclasses.dataclass(frozen=True)
class TextPart:
    """Consecutive lines of one file.

    Attributes:
      path: the file.
      input_format: one of INPUT_FORMATS but "auto".
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


def _compression(path: str) -> str:
    extension = os.path.splitext(path)[1]
    return extension if extension in _COMPRESSION else ""


def text_bytes(path: str) -> float:
    """Bytes of a file's text; a guess for compressed files."""
    return storage.size(path) * _COMPRESSION.get(_compression(path), 1)


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


class _Counted(io.RawIOBase):
    """A file that counts the bytes read."""

    def __init__(self, path: str):
        super().__init__()
        self._file = storage.open_file(path, "rb")
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _decompressed(raw: BinaryIO, extension: str) -> BinaryIO:
    if extension == ".gz":
        return gzip.GzipFile(fileobj=raw)
    if extension == ".bz2":
        return bz2.BZ2File(raw)
    if extension == ".xz":
        return lzma.LZMAFile(raw)
    if extension == ".zst":
        import zstandard

        return io.BufferedReader(
            zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True), _BUFFER_BYTES
        )
    return raw


def _decompression_errors(extension: str) -> tuple[type[Exception], ...]:
    errors = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
    if extension == ".bz2":
        return (*errors, OSError)
    if extension == ".zst":
        import zstandard

        return (*errors, zstandard.ZstdError)
    return errors


class _Reader:
    """One file, in lines; use as a context manager.

    Raises UserError for UTF-16 and for damaged compression, whenever it shows.
    """

    def __init__(self, path: str):
        self.path = path
        self._extension = _compression(path)
        self._raw = _Counted(path)
        self._taken = 0
        self._stream = _decompressed(io.BufferedReader(self._raw, _BUFFER_BYTES), self._extension)
        self._ahead, self._place = self._read(3), 0  # What was read, and how much of it is used.
        if self._ahead.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise UserError(f"{self.path} is UTF-16; convert it to UTF-8.")
        self._ahead = self._ahead.removeprefix(b"\xef\xbb\xbf")

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *unused_error) -> None:
        self._stream.close()
        self._raw.close()

    def take_stored_bytes(self) -> int:
        """Stored bytes read since the last call."""
        taken, self._taken = self._taken, self._raw.count
        return self._taken - taken

    def _read(self, size: int, is_line: bool = False) -> bytes:
        try:
            return self._stream.readline(size) if is_line else self._stream.read(size)
        except _decompression_errors(self._extension) as error:
            kind = {".gz": "gzip", ".zst": "zstd"}.get(self._extension, self._extension[1:])
            raise UserError(f"{self.path} is not a complete {kind} file: {error}.") from error

    def read_line(self, limit: int) -> bytes:
        """The next line with its end, or a part of `limit` bytes of it; nothing at the end."""
        stop = self._place + limit
        end = self._ahead.find(b"\n", self._place, stop) + 1 or min(stop, len(self._ahead))
        line, self._place = self._ahead[self._place : end], end
        if not line.endswith(b"\n") and len(line) < limit:
            line += self._read(limit - len(line), is_line=True)
        return line

    def read_lines(self, size: int, limit: int) -> bytes:
        """Many whole lines at once, about `size` bytes; nothing when a line is beyond `limit`."""
        ahead = self._ahead[self._place :]
        ahead += self._read(max(0, size - len(ahead)))
        ends = np.flatnonzero(np.frombuffer(ahead, np.uint8) == ord("\n")) + 1
        if not len(ends) or np.diff(ends, prepend=0).max() >= limit:
            self._ahead, self._place = ahead, 0
            return b""
        self._ahead, self._place = ahead[ends[-1] :], 0
        return ahead[: ends[-1]]


def detect_format(path: str) -> str:
    """What "auto" means for a file.

    jsonl for *.jsonl and *.json, compressed or not; wikiextractor when the text starts with
    "<doc "; otherwise paragraphs when more than half of the first 1,000 lines with text hold the
    end of a sentence inside, else lines.
    """
    name = path.removesuffix(_compression(path)) if _compression(path) else path
    if name.endswith((".jsonl", ".json")):
        return "jsonl"
    with _Reader(path) as reader:
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


def read_blocks(
    group: int, files: Sequence[str], block_bytes: int, input_format: str = "auto"
) -> Iterator[TextBlock]:
    """The blocks of one group of files: a function of the files and `block_bytes` only.

    Args:
      group: number of the group.
      files: its files, see `group_files`.
      block_bytes: a block ends with the document in which it reaches so many bytes.
      input_format: one of INPUT_FORMATS.

    Raises:
      UserError: UTF-16, or damaged compression.
    """
    numbers = itertools.count()
    parts: list[TextPart] = []
    in_block = stored = 0
    for path in files:
        kind = detect_format(path) if input_format == "auto" else input_format
        builder = _PartBuilder(path, kind)
        with _Reader(path) as reader:
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
