"""Large files in ranges of bytes that any process can find and read apart from the others.

The ranges of a file are the blocks that reading it from the beginning gives (`read_blocks`), found
by looking only at where they end: a block of 32 MB costs a read or two of some kilobytes. So a
cluster divides a file of a terabyte in seconds, and its records are those of one machine.

    a file of 100 MB, blocks of 32 MB     0 ........ 32 ........ 64 ........ 96 .. 100
    read: the last lines before 32 MB, and from there to the end of the document, at 32.01 MB;
          the last lines before 64.01 MB, and so on

A range does not know the number of its first line, as nothing before it was read. It counts its
lines from 1, and says how many there are, so that whoever has all ranges can add them up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import IO

from data_pipeline.corpus.blocks import TextBlock, block_name, read_blocks
from data_pipeline.corpus.documents import Corpus
from data_pipeline.corpus.formats import detect_format
from data_pipeline.corpus.parts import PartBuilder
from data_pipeline.corpus.reader import Reader
from data_pipeline.files import storage

_LOOK_BYTES = 1 << 16


@dataclasses.dataclass(frozen=True)
class TextRange:
    """Place of a block's text: whole lines of one file that is not compressed.

    Attributes:
      group, index: numbers of the block, see `TextBlock`.
      path: the file.
      input_format: format of the lines, see `TextPart`.
      start, end: first byte, and the byte after the last.
      in_long_line: whether `start` is inside a line that is too long.
      held_back: number of bytes before `start` that belong to this block, see
        `PartBuilder.held_back`.
      is_last: whether `end` is the end of the file.
      has_text: in the last range: whether there is text in the file.
    """

    group: int
    index: int
    path: str
    input_format: str
    start: int
    end: int
    in_long_line: bool
    held_back: int
    is_last: bool = False
    has_text: bool = True

    @property
    def name(self) -> str:
        """Name of the block: "00002-00013"."""
        return block_name(self.group, self.index)

    @property
    def stored_bytes(self) -> int:
        """Bytes of the file."""
        return self.end - self.start

    def read(self) -> TextBlock:
        """The block; its lines are counted from 1."""
        builder = PartBuilder(self.path, self.input_format)
        builder.in_long_line = self.in_long_line
        begin = self.start - self.held_back
        with Reader(self.path, start=begin, buffer_bytes=_LOOK_BYTES) as reader:
            if self.held_back:
                builder.held_back = reader.read_line(self.held_back)
            while reader.offset < self.end and builder.add_from(reader, self.end - reader.offset):
                pass
        builder.has_text = builder.has_text or (self.is_last and self.has_text)
        part = builder.take(final=self.is_last)
        lines = builder.next_line - 1
        return TextBlock(self.group, self.index, [part], self.stored_bytes, lines)

    def blocks(self, corpus: Corpus, block_bytes: int) -> Iterator[TextBlock]:
        """The block, as the only one; see `FileGroup`."""
        yield self.read()


@dataclasses.dataclass(frozen=True)
class FileGroup:
    """Files that are read from the beginning to the end: small ones, or one of undivided text.

    That is a compressed one, Parquet, or one whose lines end with carriage returns alone.

    Attributes:
      group: number of the group.
      files: paths.
    """

    group: int
    files: Sequence[str]

    @property
    def name(self) -> str:
        """Name of the group, which no block has: "00002"."""
        return f"{self.group:05d}"

    def blocks(self, corpus: Corpus, block_bytes: int) -> Iterator[TextBlock]:
        """Its blocks, one after the other."""
        return read_blocks(
            self.group, self.files, block_bytes, corpus.input_format, corpus.text_field
        )


def text_of(block: TextBlock | TextRange) -> TextBlock:
    """A block as it is, or the block that a range names, read from its file."""
    return block.read() if isinstance(block, TextRange) else block


def divide(
    group: int, files: Sequence[str], corpus: Corpus, block_bytes: int
) -> Iterator[TextRange | FileGroup]:
    """A group of files, in parts that different workers can read.

    Args:
      group: number of the group, from 0.
      files: its files, see `blocks.group_files`.
      corpus: the corpus, for format and language.
      block_bytes: bytes of text, as for `blocks.read_blocks`.

    Yields:
      The ranges of a large plain file in order, or the group itself as the only part.

    Raises:
      UserError: a file that is no text, as far as its beginning tells.
    """
    if len(files) == 1 and storage.size(files[0]) > block_bytes:
        with Reader(files[0], corpus.text_field) as reader:
            text_start = reader.offset
            is_plain = reader.is_plain
        if is_plain and corpus.input_format != "parquet":  # That is refused by `read_blocks`.
            yield from _find_ranges(group, files[0], text_start, corpus.input_format, block_bytes)
            return
    yield FileGroup(group, files)


def _find_ranges(
    group: int, path: str, text_start: int, input_format: str, block_bytes: int
) -> Iterator[TextRange]:
    """The ranges of one file: the loop of `read_blocks` without the reading.

    The same `PartBuilder` decides where a block ends. Only the last line before that place, and the
    lines from there to the end of a document, are given to it; the bytes before are counted.
    """
    kind = detect_format(path) if input_format == "auto" else input_format
    builder = PartBuilder(path, kind)
    size, start, offset, index, at_end = storage.size(path), 0, text_start, 0, False
    with storage.open_file(path, "rb") as file:
        while not at_end:
            held_back, in_long_line = len(builder.held_back), builder.in_long_line
            offset = _skip(file, size, offset, builder, block_bytes)
            with Reader(path, start=offset, buffer_bytes=_LOOK_BYTES) as reader:
                while not builder.is_full(block_bytes) and not at_end:
                    at_end = not builder.add_from(reader, block_bytes - builder.bytes)
                offset = reader.offset
            # The skipped lines may have had text: asked only where nothing else shows it.
            has_text = builder.has_text or not at_end or _has_text(file, text_start)
            if not at_end or offset > start or held_back or not has_text:
                place = (start, offset, in_long_line, held_back, at_end, has_text)
                yield TextRange(group, index, path, kind, *place)
            builder.take(final=False)
            start, index = offset, index + 1


def _skip(file: IO[bytes], size: int, offset: int, builder: PartBuilder, block_bytes: int) -> int:
    """The place from which lines must be read, after those that are surely in this block.

    Args:
      file: the file.
      size: bytes of the file.
      offset: byte at which the block begins, at the start of a line.
      builder: told about the bytes that are skipped.
      block_bytes: bytes that the block should reach.
    """
    while not builder.in_long_line:
        room = min(block_bytes - builder.bytes, size - offset)
        if builder.input_format == "jsonl":  # A longer line would not count as text.
            room = min(room, builder.limit)
        end, last_line = _last_line(file, offset, offset + room)
        if len(last_line) >= builder.limit:  # It is divided, by whoever reads it.
            end -= len(last_line)
        if end == offset:
            break
        builder.skip(end - offset, last_line)
        offset = end
    return offset


def _last_line(file: IO[bytes], low: int, high: int) -> tuple[int, bytes]:
    """The last whole line between two places of a file, and its end; `low` begins a line.

    b"ab\\ncde\\nfg": low 0, high 9 -> (7, b"cde\\n"). Without a whole line: (low, b"").
    """
    size = _LOOK_BYTES
    while True:
        begin = max(low, high - size)
        file.seek(begin)
        text = file.read(high - begin)
        end = text.rfind(b"\n") + 1
        start = text.rfind(b"\n", 0, end - 1) + 1 if end else 0
        if begin == low or start:
            return begin + end if end else low, text[start:end]
        size *= 4


def _has_text(file: IO[bytes], text_start: int) -> bool:
    """Whether any byte from `text_start` on is not white space."""
    file.seek(text_start)
    return any(not chunk.isspace() for chunk in iter(lambda: file.read(_LOOK_BYTES), b""))
