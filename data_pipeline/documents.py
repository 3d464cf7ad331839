"""Blocks of text to documents: lists of sentences, one document at a time.

Formats (`input_format`):
  lines          one sentence per line, a blank line between documents (google-research's format).
  paragraphs     one paragraph per line, a blank line between documents; sentences are split here.
  jsonl          one JSON object per line is one document; its field "text" holds paragraphs, which
                 are separated by blank lines or, unless they look like lines wrapped at a fixed
                 width, by line breaks; sentences are split here.
  parquet        the same for the rows of a Parquet file and their column "text".
  wikiextractor  <doc ...>, the title, paragraphs, </doc>, as WikiExtractor writes them; the title
                 is left out, sentences are split here. (Its --json output is jsonl.)
  auto           see `text_blocks.detect_format`.
Sentences of raw text (all but lines) with fewer letters and digits than signs (rows of tables) are
left out and counted; quotation marks, dashes and full stops around a word (“No.”) do not count.
A document never runs across files. Hard-wrapped plain text should be unwrapped first (or given as
jsonl): in the formats above each of its lines counts as a sentence or paragraph.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import html
import json
import re
import string
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tqdm

from data_pipeline import storage, text_blocks
from data_pipeline.errors import UserError
from data_pipeline.text_blocks import INPUT_FORMATS, TextBlock, TextPart, match_files
from data_pipeline.text_checks import check_are_text, check_small_files, faultless

MAX_EXAMPLES = 20
_BLANK_LINES = re.compile(r"\n\s*\n")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LETTER_OR_DIGIT, _SIGN = re.compile(r"[^\W_]"), re.compile(r"[^\w\s]|_")
_PLAIN = (string.ascii_letters + string.digits + " ").encode("ascii")
_WRAPPED_WIDTHS = range(40, 101)
_EDGES = " \"'.,:;!?…-–—―“”„‘’‚«»‹›¿¡。，！？、「」『』《》〈〉"
_TITLE = re.compile(r'<doc [^>]*title="([^"]*)"')


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Where the text is and how to read it.

    Attributes:
      patterns: files, as for `match_files`.
      input_format: one of INPUT_FORMATS, see above.
      text_field: name of the field of jsonl, or the column of Parquet, that holds the text.
      language: ISO code, for splitting sentences.
      deduplicate: drop documents that occurred before, but for whitespace.
    """

    patterns: Sequence[str] | str
    input_format: str = "auto"
    text_field: str = "text"
    language: str = "en"
    deduplicate: bool = False

    def __post_init__(self):
        if self.input_format not in INPUT_FORMATS:
            raise UserError(
                f"--input_format should be one of {', '.join(INPUT_FORMATS)}; received "
                f"{self.input_format!r}."
            )

    def files(self) -> list[str]:
        """The files, which exist."""
        return match_files(self.patterns)


@dataclasses.dataclass
class ReadReport:
    """What was met while reading.

    Attributes:
      problems: number of lines or files by kind of problem.
      examples: "file:line: problem" of the first problems.
    """

    problems: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    examples: list[str] = dataclasses.field(default_factory=list)

    def add(self, problem: str, where: str) -> None:
        """Counts one problem at "file" or "file:line"."""
        self.problems[problem] += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(f"{where}: {problem}")


class _RawDocument(NamedTuple):
    """A document before its sentences are split: lines that are sentences, or paragraphs."""

    texts: list[str]
    are_sentences: bool


def _lines(part: TextPart, report: ReadReport) -> list[str]:
    """Lines without their ends; what is not text is repaired and reported.

    Raises:
      UserError: most lines are no text.
    """
    text = faultless(part.content)
    if text is not None:
        return text.split("\n")
    lines = part.content.split(b"\n")
    check_are_text(lines, part.path)
    return [
        _decode(line, f"{part.path}:{number}", report)
        for number, line in enumerate(lines, start=part.first_line)
    ]


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


def split_sentences(paragraph: str, language: str = "en") -> list[str]:
    """Sentences of a paragraph, stripped, without empty ones.

    Whitespace is collapsed first, as normalizing does later: sentencex 1.0 panics on rare spaces.
    """
    import sentencex

    sentences = sentencex.segment(language, " ".join(paragraph.split()))
    return [sentence.strip() for sentence in sentences if sentence.strip()]


def _useful_sentences(paragraph: str, language: str, report: ReadReport) -> list[str]:
    """The sentences of raw text, without the rules and rows of signs of its tables."""
    sentences = split_sentences(paragraph, language)
    useful = [sentence for sentence in sentences if not _mostly_signs(sentence)]
    if len(useful) < len(sentences):
        reason = "sentence with fewer letters and digits than signs, skipped"
        report.problems[reason] += len(sentences) - len(useful)
    return useful


def _mostly_signs(sentence: str) -> bool:
    # With single spaces, signs that outnumber the rest are more than a quarter of a sentence. There
    # are at most as many as bytes that are no ASCII letter, digit or space; that is counted fast.
    if 4 * len(sentence.encode("utf-8", "replace").translate(None, _PLAIN)) <= len(sentence):
        return False
    words = sentence.strip(_EDGES)
    if any(map(str.isalpha, words)):
        sentence = words
    return len(_LETTER_OR_DIGIT.findall(sentence)) < len(_SIGN.findall(sentence))


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs of a raw text, see the rule for jsonl above."""
    for block in _BLANK_LINES.split(text):
        lines = [line for line in block.splitlines() if line.strip()]
        if all(len(line) in _WRAPPED_WIDTHS for line in lines[:-1]):
            yield " ".join(line.strip() for line in lines)
        else:
            yield from lines


def _plain_documents(part: TextPart, report: ReadReport) -> Iterator[_RawDocument]:
    are_sentences = part.input_format == "lines"
    texts: list[str] = []
    for line in _lines(part, report):
        line = line.strip()
        if line:
            texts.append(line)
        elif texts:
            yield _RawDocument(texts, are_sentences)
            texts = []
    if texts:
        yield _RawDocument(texts, are_sentences)


def _wikiextractor_documents(part: TextPart, report: ReadReport) -> Iterator[_RawDocument]:
    texts: list[str] = []
    title = ""
    for line in _lines(part, report):
        line = line.strip()
        if line.startswith(("<doc ", "</doc>")):
            if texts:
                yield _RawDocument(texts, False)
            found = _TITLE.match(line)
            texts, title = [], html.unescape(found[1]) if found else ""
        elif line:
            line = html.unescape(line)
            if texts or line != title:
                texts.append(line)
    if texts:
        yield _RawDocument(texts, False)


def _json_documents(part: TextPart, text_field: str, report: ReadReport) -> Iterator[_RawDocument]:
    for number, line in enumerate(_lines(part, report), start=part.first_line):
        if not line.strip():
            continue
        where = f"{part.path}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            report.add("not JSON, skipped", where)
            continue
        text = record.get(text_field) if isinstance(record, dict) else None
        if not isinstance(text, str):
            report.add(f"no text in field {text_field!r}, skipped", where)
            continue
        if _SURROGATES.search(text):
            report.add("half a surrogate pair, replaced by U+FFFD", where)
            text = _SURROGATES.sub("\ufffd", text)
        yield _RawDocument(list(_paragraphs(text)), False)


def _raw_documents(block: TextBlock, text_field: str, report: ReadReport) -> Iterator[_RawDocument]:
    check_small_files(block)
    for part in block.parts:
        for where, problem in part.problems:
            report.add(problem, where)
        if part.input_format == "jsonl":
            yield from _json_documents(part, text_field, report)
        elif part.input_format == "wikiextractor":
            yield from _wikiextractor_documents(part, report)
        else:
            yield from _plain_documents(part, report)


def split_document(text: str, language: str = "en", report: ReadReport | None = None) -> list[str]:
    """Sentences of one raw document, found as in a text of jsonl.

    Args:
      text: paragraphs, see above.
      language: ISO code.
      report: counts what is left out.
    """
    report = report if report is not None else ReadReport()
    text = _SURROGATES.sub("\ufffd", text.replace("\0", " "))
    return [
        sentence
        for paragraph in _paragraphs(text)
        for sentence in _useful_sentences(paragraph, language, report)
    ]


def documents_of_block(
    block: TextBlock, corpus: Corpus, report: ReadReport, dropped: Sequence[int] = ()
) -> Iterator[list[str]]:
    """Documents, as lists of sentences.

    Args:
      block: the text.
      corpus: how to read it.
      report: filled in while reading.
      dropped: numbers of documents to leave out, see deduplication.py.
    """
    left_out = frozenset(dropped)
    for number, raw in enumerate(_raw_documents(block, corpus.text_field, report)):
        if number in left_out:
            report.problems["duplicate document, dropped"] += 1
        elif raw.are_sentences:
            yield raw.texts
        else:
            sentences = [
                sentence
                for paragraph in raw.texts
                for sentence in _useful_sentences(paragraph, corpus.language, report)
            ]
            if sentences:
                yield sentences


def number_of_documents(block: TextBlock, corpus: Corpus) -> int:
    """How many documents there are to number in a block, see `documents_of_block`."""
    return sum(1 for _ in _raw_documents(block, corpus.text_field, ReadReport()))


def document_digests(block: TextBlock, corpus: Corpus) -> list[int]:
    """A number of 64 bits for each document, equal for equal text but for whitespace."""
    return [
        int.from_bytes(
            hashlib.blake2b(
                " ".join(word for text in raw.texts for word in text.split()).encode("utf-8"),
                digest_size=8,
            ).digest(),
            "little",
        )
        for raw in _raw_documents(block, corpus.text_field, ReadReport())
    ]


def read_documents(
    corpus: Corpus, report: ReadReport | None = None, show_progress: bool = False
) -> Iterator[list[str]]:
    """All documents of a corpus, one after the other; holds one block of text in memory.

    Args:
      corpus: the text.
      report: filled in while reading.
      show_progress: draw a bar on stderr.

    Raises:
      UserError: no such file, unknown format, a file that is no text, UTF-16 or damaged. A few
        lines that are not UTF-8, or not JSON, or hold NUL bytes are repaired or skipped, and
        counted in `report`.
    """
    report = report if report is not None else ReadReport()
    files = corpus.files()
    with progress_bar(sum(storage.sizes(files)), show_progress) as bar:
        for block in read_corpus(files, corpus):
            yield from documents_of_block(block, corpus, report)
            bar.update(block.stored_bytes)


def read_corpus(
    files: Sequence[str], corpus: Corpus, block_bytes: int = text_blocks.MIN_BLOCK_BYTES
) -> Iterator[TextBlock]:
    """All blocks of a corpus in order."""
    groups = text_blocks.group_files(files, storage.sizes(files), block_bytes)
    for group, members in enumerate(groups):
        yield from text_blocks.read_blocks(
            group, members, block_bytes, corpus.input_format, corpus.text_field
        )


def progress_bar(total: int, show: bool) -> tqdm.tqdm:
    """A bar over the stored bytes of files on stderr."""
    return tqdm.tqdm(
        total=total,
        unit="B",
        unit_scale=True,
        desc="corpus",
        disable=not show,
        file=sys.stderr,
        dynamic_ncols=True,
    )
