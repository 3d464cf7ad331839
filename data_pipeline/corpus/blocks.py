"""Corpus files to blocks of whole documents, cut the same way however many processes work on them.

A block is what one worker turns into records at once. It ends where a document ends, and holds
parts of several files when they are small. Files are divided into groups first, so that each group
can be read on its own, by another machine if need be.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence

from data_pipeline.corpus.formats import find_format
from data_pipeline.corpus.parts import PartBuilder
from data_pipeline.corpus.reader import Reader
from data_pipeline.corpus.streams import text_bytes
from data_pipeline.corpus.text_part import TextPart
from data_pipeline.errors import UserError
from data_pipeline.files import storage

MAX_BLOCK_BYTES, MIN_BLOCK_BYTES, BLOCKS = 32 << 20, 1 << 20, 32


@dataclasses.dataclass(frozen=True)
class TextBlock:
    """Whole documents, at most some MAX_BLOCK_BYTES + MAX_DOCUMENT_BYTES of them.

    Attributes:
      group, index: number of the group of files, and of the block in it, from 0.
      parts: the text.
      stored_bytes: bytes of the (compressed) files that were read for it.
    """

    group: int
    index: int
    parts: Sequence[TextPart]
    stored_bytes: int

    @property
    def name(self) -> str:
        """Name of the block, "00002-00013" for 2 and 13; names sort in the order of the corpus."""
        return f"{self.group:05d}-{self.index:05d}"

    @property
    def text_bytes(self) -> int:
        """Bytes of text."""
        return sum(len(part.content) for part in self.parts)


def match_files(patterns: Sequence[str] | str) -> list[str]:
    """Paths for glob patterns (a sequence, or one string with commas), sorted within a pattern.

    Raises:
      UserError: nothing matches, a folder matches, or a pattern occurs twice.
    """
    if isinstance(patterns, (str, os.PathLike)):
        patterns = [part.strip() for part in os.fspath(patterns).split(",")]
    files: dict[str, None] = {}
    named = [pattern for pattern in map(os.fspath, patterns) if pattern]
    for pattern in named:
        if named.count(pattern) > 1:
            raise UserError(f"{pattern!r} is named twice as input; name each file once.")
        matches = storage.match(pattern)
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


def group_files(files: Iterable[str], sizes: Iterable[int], block_bytes: int) -> list[list[str]]:
    """Consecutive files in groups: as many as fill a block; a large file is alone.

    Plain files of 3, 4, 9 and 2 bytes, in blocks of 8 -> [[3, 4], [9], [2]].

    Args:
      files: paths.
      sizes: stored bytes of each.
      block_bytes: bytes of text in a block.
    """
    groups: list[list[str]] = []
    room = 0.0
    for path, stored_bytes in zip(files, sizes):
        size = text_bytes(path, stored_bytes)
        if not groups or size > room:
            groups.append([])
            room = block_bytes
        groups[-1].append(path)
        room -= size
    return groups


def read_blocks(
    group: int,
    files: Sequence[str],
    block_bytes: int,
    input_format: str = "auto",
    text_field: str = "text",
) -> Iterator[TextBlock]:
    """The blocks of one group of files: a function of the files and `block_bytes` only.

    Args:
      group: number of the group, from 0.
      files: its files, see `group_files`.
      block_bytes: bytes of text; a block ends with the document in which it reaches them.
      input_format: one of INPUT_FORMATS.
      text_field: column of Parquet files that holds the text; their rows become jsonl.

    Yields:
      Blocks in the order of the files. One block of text is in memory at a time.

    Raises:
      UserError: a file is no text, is UTF-16, or is damaged.
    """
    numbers = itertools.count()
    parts: list[TextPart] = []
    in_block = stored = 0
    for path in files:
        builder = PartBuilder(path, find_format(path, input_format, text_field))
        with Reader(path, text_field) as reader:
            while builder.add_from(reader, block_bytes - in_block - builder.bytes):
                if builder.is_full(block_bytes - in_block):
                    parts.append(builder.take(final=False))
                    stored += reader.take_stored_bytes()
                    yield TextBlock(group, next(numbers), parts, stored)
                    parts, in_block, stored = [], 0, 0
            in_block += builder.bytes
            parts.append(builder.take(final=True))
            stored += reader.take_stored_bytes()
    if any(part.content or part.problems for part in parts):
        yield TextBlock(group, next(numbers), parts, stored)
