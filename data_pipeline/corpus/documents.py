"""Converts blocks of text to documents: lists of sentences, one document at a time."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

import tqdm

from data_pipeline.corpus.blocks import (
    MIN_BLOCK_BYTES,
    TextBlock,
    group_files,
    match_files,
    read_blocks,
)
from data_pipeline.corpus.formats import FORMATS, INPUT_FORMATS, RawDocument
from data_pipeline.corpus.report import ReadReport
from data_pipeline.corpus.sentences import useful_sentences
from data_pipeline.corpus.text_part import check_small_files
from data_pipeline.errors import UserError
from data_pipeline.files import storage
from data_pipeline.settings import Settings, setting

READING = ("input_format", "text_field", "language")  # Fields of a Corpus: how files are read.
_LANGUAGE = re.compile(r"[a-z]{2,3}([-_][A-Za-z0-9]+)*")


@dataclasses.dataclass(frozen=True)
class Corpus(Settings):
    """The files of a corpus that match `patterns`, and the way they are read."""

    patterns: Sequence[str] | str
    input_format: str = setting(
        "auto",
        "Format of the files (docs/data.md); auto: detected from their names and first lines.",
        one_of=INPUT_FORMATS,
    )
    text_field: str = setting("text", "Field of jsonl, or column of Parquet, that holds the text.")
    language: str = setting("en", "ISO code of the language of the text, used to split sentences.")
    deduplicate: bool = setting(
        False, "Drop documents that equal an earlier one, ignoring whitespace."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _LANGUAGE.fullmatch(self.language):
            raise UserError(
                f"--language={self.language} is not an ISO code of a language; give one of two or "
                "three letters, such as en."
            )

    def files(self) -> list[str]:
        """Paths of the files, sorted within a pattern, as `match_files` finds them."""
        return match_files(self.patterns)

    def blocks(self, group: int, files: Sequence[str], block_bytes: int) -> Iterator[TextBlock]:
        """The blocks of one group of the corpus's files, as `read_blocks` reads them."""
        return read_blocks(group, files, block_bytes, self.input_format, self.text_field)


def raw_documents(block: TextBlock, corpus: Corpus, report: ReadReport) -> Iterator[RawDocument]:
    """The documents of a block in order, before their sentences are split."""
    check_small_files(block.parts)
    for part in block.parts:
        for where, problem in part.problems:
            report.add(problem, where)
        yield from FORMATS[part.input_format].documents(part, corpus.text_field, report)


def documents_of_block(
    block: TextBlock, corpus: Corpus, report: ReadReport, dropped: Sequence[int] = ()
) -> Iterator[list[str]]:
    """The documents of a block, as lists of at least one sentence. Problems are added to `report`.
    `dropped` are the numbers of documents to leave out, counted from 0 in the block.
    """
    left_out = frozenset(dropped)
    for number, raw in enumerate(raw_documents(block, corpus, report)):
        if number in left_out:
            report.problems["duplicate document, dropped"] += 1
        elif raw.are_sentences:
            yield raw.texts
        else:
            sentences = [
                sentence
                for paragraph in raw.texts
                for sentence in useful_sentences(paragraph, corpus.language, report)
            ]
            if sentences:
                yield sentences


def number_of_documents(block: TextBlock, corpus: Corpus) -> int:
    """Number of documents in a block, including those without a useful sentence."""
    # The report is discarded: problems are counted when records are made from the block.
    return sum(1 for _ in raw_documents(block, corpus, ReadReport()))


def read_documents(
    corpus: Corpus, report: ReadReport | None = None, show_progress: bool = False
) -> Iterator[list[str]]:
    """Yields all documents of a corpus as lists of sentences. Only one block of text is in memory
    at a time. Problems are added to `report`.
    """
    report = report if report is not None else ReadReport()
    files = corpus.files()
    with progress_bar(sum(storage.sizes(files)), show_progress) as bar:
        for block in read_corpus(files, corpus):
            yield from documents_of_block(block, corpus, report)
            bar.update(block.stored_bytes)


def read_corpus(
    files: Sequence[str], corpus: Corpus, block_bytes: int = MIN_BLOCK_BYTES
) -> Iterator[TextBlock]:
    """All blocks of a corpus in order."""
    for group, members in enumerate(group_files(files, storage.sizes(files), block_bytes)):
        yield from corpus.blocks(group, members, block_bytes)


def progress_bar(total: int, show: bool) -> tqdm.tqdm:
    """A progress bar on stderr that counts the stored bytes of files."""
    return tqdm.tqdm(
        total=total, unit="B", unit_scale=True, desc="corpus", disable=not show, dynamic_ncols=True
    )
