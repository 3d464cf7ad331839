"""Cuts corpus files into blocks of whole documents, regardless of the number of processes.

Files are divided into groups first, so that different machines can read different groups.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence

from data_pipeline.corpus.formats import examine
from data_pipeline.corpus.parts import PartBuilder
from data_pipeline.corpus.streams import Reader, text_bytes
from data_pipeline.corpus.text_part import TextPart
from data_pipeline.errors import UserError
from data_pipeline.files import storage

# A corpus is cut into about BLOCKS blocks, whose sizes are within these bounds.
MAX_BLOCK_BYTES, MIN_BLOCK_BYTES, BLOCKS = 32 << 20, 1 << 20, 32


@dataclasses.dataclass(frozen=True)
class TextBlock:
    """The text that one worker turns into records at once: whole documents, at most about
    MAX_BLOCK_BYTES + MAX_DOCUMENT_BYTES bytes. If files are small, it has parts of several files.
    """

    group: int  # Number of the group of files, from 0.
    index: int  # Number of the block in the group, from 0.
    parts: Sequence[TextPart]
    stored_bytes: int  # Bytes of the (compressed) files that were read for it.

    @property
    def name(self) -> str:
        """Name of the block, "00002-00013" for 2 and 13; names sort in the order of the corpus."""
        return f"{self.group:05d}-{self.index:05d}"

    @property
    def text_bytes(self) -> int:
        """Bytes of text."""
        return sum(len(part.content) for part in self.parts)


def match_files(patterns: Sequence[str] | str) -> list[str]:
    """Paths that match glob patterns (a sequence, or one string with commas), sorted within each
    pattern. A folder, a pattern without matches, and a pattern given twice are a UserError.
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
    """The corpus size divided by BLOCKS, between MIN_BLOCK_BYTES and MAX_BLOCK_BYTES."""
    return int(min(MAX_BLOCK_BYTES, max(MIN_BLOCK_BYTES, total_text_bytes / BLOCKS)))


def group_files(files: Iterable[str], sizes: Iterable[int], block_bytes: int) -> list[list[str]]:
    """Groups consecutive files, as many as fit into a block; a large file is a group of its own.

    Plain files of 3, 4, 9 and 2 bytes, in blocks of 8 -> [[3, 4], [9], [2]].
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
    """The blocks of one group of files in order; they depend on the files and `block_bytes` only.

    A block ends with the document in which it reaches `block_bytes` bytes of text. One block is in
    memory at a time. Files that are damaged or not text are a UserError.
    """
    numbers = itertools.count()
    parts: list[TextPart] = []
    in_block = stored = 0
    for path in files:
        builder = PartBuilder(path, *examine(path, input_format, text_field))
        with Reader(path, text_field) as reader:
            # Read many lines at once while there is room, then one at a time, so that the block
            # ends at the same line as if all lines were read one by one.
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
