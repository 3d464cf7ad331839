"""Corpora to documents: text files (gzip or not) to lists of sentences, one document at a time.

Formats (`input_format`):
  lines       one sentence per line, a blank line between documents (google-research's format).
  paragraphs  one paragraph per line, a blank line between documents; sentences are split here.
  jsonl       one JSON object per line is one document; its field "text" holds paragraphs, which are
              separated by blank lines or, unless they look like lines wrapped at a fixed width, by
              line breaks; sentences are split here.
  auto        jsonl for *.jsonl and *.json (also with .gz); otherwise paragraphs when more than half
              of the first 1,000 lines with text hold the end of a sentence inside, else lines.
Sentences of raw text (paragraphs, jsonl) with fewer letters and digits than signs (rows of tables)
are left out and counted.
A document never runs across files. Hard-wrapped plain text should be unwrapped first (or given as
jsonl): in the formats above each of its lines counts as a sentence or paragraph.
"""

from __future__ import annotations

import collections
import dataclasses
import gzip
import io
import itertools
import json
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence

import tensorflow as tf
import tqdm

from data_pipeline.errors import UserError

INPUT_FORMATS = ("auto", "lines", "paragraphs", "jsonl")
_SAMPLE_LINES = 1000
_BUFFER_BYTES = 1 << 20
_MAX_EXAMPLES = 20
_BLANK_LINES = re.compile(r"\n\s*\n")
_SENTENCE_END_INSIDE = re.compile(r"[.!?。！？][\"'”’)\]]*\s+[^\W\d_a-z]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LETTER_OR_DIGIT, _SIGN = re.compile(r"[^\W_]"), re.compile(r"[^\w\s]|_")
_WRAPPED_WIDTHS = range(40, 101)


@dataclasses.dataclass(frozen=True)
class Document:
    """A text whose sentences belong together.

    Attributes:
      source: file it came from.
      index: running number over the whole corpus, from 0.
      sentences: non-empty strings in order.
    """

    source: str
    index: int
    sentences: list[str]


@dataclasses.dataclass
class ReadReport:
    """What was met while reading; filled in by `read_documents`.

    Attributes:
      files: paths read so far.
      bytes_read: bytes of the files as stored (compressed bytes of .gz).
      problems: number of lines or files by kind of problem.
      examples: "file:line: problem" of the first problems.
    """

    files: list[str] = dataclasses.field(default_factory=list)
    bytes_read: int = 0
    problems: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    examples: list[str] = dataclasses.field(default_factory=list)

    def add(self, problem: str, where: str) -> None:
        """Counts a problem and keeps the place of the first ones."""
        self.problems[problem] += 1
        if len(self.examples) < _MAX_EXAMPLES:
            self.examples.append(f"{where}: {problem}")


class _CountingFile(io.RawIOBase):
    """A file of any file system that TensorFlow knows, as a raw Python stream."""

    def __init__(self, path: str, report: ReadReport):
        super().__init__()
        self._file = tf.io.gfile.GFile(path, "rb")
        self._report = report

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        self._report.bytes_read += len(content)
        return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()


def match_files(patterns: Sequence[str] | str) -> list[str]:
    """Files that match the patterns, each once, in sorted order within a pattern.

    Args:
      patterns: globs; a string may hold several, separated by commas.

    Raises:
      UserError: a pattern matches nothing or a folder.
    """
    if isinstance(patterns, (str, os.PathLike)):
        patterns = [part.strip() for part in os.fspath(patterns).split(",")]
    files: dict[str, None] = {}
    for pattern in filter(None, map(os.fspath, patterns)):
        matches = sorted(tf.io.gfile.glob(pattern))
        if not matches:
            raise UserError(f"No file matches {pattern!r}; give an existing text file or pattern.")
        for path in matches:
            if tf.io.gfile.isdir(path):
                raise UserError(f"{path} is a folder; give the files in it, as in {path}/*.txt.")
            files[path] = None
    if not files:
        raise UserError("No input file is named; give at least one file or pattern.")
    return list(files)


def total_bytes(files: Iterable[str]) -> int:
    """Bytes of the files as stored."""
    return sum(tf.io.gfile.stat(path).length for path in files)


def _read_lines(path: str, report: ReadReport) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and lines without their ends; repairs and reports what is not text."""
    raw = io.BufferedReader(_CountingFile(path, report), _BUFFER_BYTES)
    stream = gzip.GzipFile(fileobj=raw) if path.endswith(".gz") else raw
    try:
        with stream, raw:
            for number, line in enumerate(stream, start=1):
                if number == 1:
                    line = line[3:] if line.startswith(b"\xef\xbb\xbf") else line
                    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                        raise UserError(f"{path} is UTF-16; convert it to UTF-8.")
                yield number, _decode(line.rstrip(b"\r\n"), f"{path}:{number}", report)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path} is not a complete gzip file: {error}.") from error


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

    Whitespace is collapsed first, as normalising does later: sentencex 1.0 panics on rare spaces.
    """
    import sentencex

    sentences = sentencex.segment(language, " ".join(paragraph.split()))
    return [sentence.strip() for sentence in sentences if sentence.strip()]


def _useful_sentences(paragraph: str, language: str, report: ReadReport) -> list[str]:
    """The sentences of raw text, without the rules and rows of signs of its tables."""
    sentences = split_sentences(paragraph, language)
    useful = [
        sentence
        for sentence in sentences
        if len(_LETTER_OR_DIGIT.findall(sentence)) >= len(_SIGN.findall(sentence))
    ]
    if len(useful) < len(sentences):
        reason = "sentence with fewer letters and digits than signs, skipped"
        report.problems[reason] += len(sentences) - len(useful)
    return useful


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs of a raw text, see the rule for jsonl above."""
    for block in _BLANK_LINES.split(text):
        lines = [line for line in block.splitlines() if line.strip()]
        if all(len(line) in _WRAPPED_WIDTHS for line in lines[:-1]):
            yield " ".join(line.strip() for line in lines)
        else:
            yield from lines


def _detect_format(path: str) -> str:
    name = path[: -len(".gz")] if path.endswith(".gz") else path
    if name.endswith((".jsonl", ".json")):
        return "jsonl"
    scratch = ReadReport()
    lines = (line for _, line in _read_lines(path, scratch) if line.strip())
    sample = list(itertools.islice(lines, _SAMPLE_LINES))
    inside = sum(bool(_SENTENCE_END_INSIDE.search(line)) for line in sample)
    return "paragraphs" if inside * 2 > len(sample) else "lines"


def _plain_documents(
    path: str, report: ReadReport, by_paragraph: bool, language: str
) -> Iterator[list[str]]:
    sentences: list[str] = []
    for _, line in _read_lines(path, report):
        if line.strip():
            sentences.extend(
                _useful_sentences(line, language, report) if by_paragraph else [line.strip()]
            )
        elif sentences:
            yield sentences
            sentences = []
    if sentences:
        yield sentences


def _json_documents(
    path: str, report: ReadReport, text_field: str, language: str
) -> Iterator[list[str]]:
    for number, line in _read_lines(path, report):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            report.add("not JSON, skipped", f"{path}:{number}")
            continue
        text = record.get(text_field) if isinstance(record, dict) else None
        if not isinstance(text, str):
            report.add(f"no text in field {text_field!r}, skipped", f"{path}:{number}")
            continue
        if _SURROGATES.search(text):
            report.add("half a surrogate pair, replaced by U+FFFD", f"{path}:{number}")
            text = _SURROGATES.sub("\ufffd", text)
        sentences = [
            sentence
            for paragraph in _paragraphs(text)
            for sentence in _useful_sentences(paragraph, language, report)
        ]
        if sentences:
            yield sentences


def with_progress(
    found: Iterable[Document], report: ReadReport, total: int, show: bool
) -> Iterator[Document]:
    """The documents, with a bar over the `total` bytes of their files on stderr when `show`."""
    with tqdm.tqdm(
        total=total, unit="B", unit_scale=True, desc="corpus", disable=not show, file=sys.stderr
    ) as bar:
        for document in found:
            bar.update(min(report.bytes_read, total) - bar.n)
            yield document
        bar.update(total - bar.n)


def read_documents(
    patterns: Sequence[str] | str,
    input_format: str = "auto",
    report: ReadReport | None = None,
    text_field: str = "text",
    language: str = "en",
) -> Iterator[Document]:
    """Documents of a corpus, in the order of the files; never holds more than one in memory.

    Args:
      patterns: as for `match_files`.
      input_format: one of INPUT_FORMATS, see the module's docstring.
      report: filled in while reading.
      text_field: name of the field of jsonl that holds the text.
      language: ISO code, for sentence splitting.

    Raises:
      UserError: no such file, unknown format, UTF-16, broken gzip. Bytes that are not UTF-8, NUL
        bytes and lines that are not JSON are repaired or skipped, and counted in `report`.
    """
    if input_format not in INPUT_FORMATS:
        raise UserError(
            f"--input_format should be one of {', '.join(INPUT_FORMATS)}; received "
            f"{input_format!r}."
        )
    report = report if report is not None else ReadReport()
    index = 0
    for path in match_files(patterns):
        report.files.append(path)
        kind = _detect_format(path) if input_format == "auto" else input_format
        if kind == "jsonl":
            documents = _json_documents(path, report, text_field, language)
        else:
            documents = _plain_documents(path, report, kind == "paragraphs", language)
        first = index
        for sentences in documents:
            yield Document(path, index, sentences)
            index += 1
        if index == first:
            report.add("file without text", path)
