"""Blocks of text to raw documents, by the format of each part (formats.py)."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from data_pipeline.corpus import parts
from data_pipeline.corpus.blocks import TextBlock
from data_pipeline.corpus.checks import check_are_text, check_small_files, faultless
from data_pipeline.corpus.parts import TextPart
from data_pipeline.corpus.report import ReadReport
from data_pipeline.corpus.sentences import replace_surrogates, split_paragraphs

_TITLE = re.compile(r'<doc [^>]*title="([^"]*)"')


class RawDocument(NamedTuple):
    """A document before its sentences are split: lines that are sentences, or paragraphs."""

    texts: list[str]
    are_sentences: bool


def _lines(part: TextPart, report: ReadReport) -> list[str]:
    """Lines without their ends; bad bytes are repaired and reported.

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


def _divided(line: str) -> list[str]:
    """A line in parts of at most MAX_LINE_BYTES, cut at spaces, or inside a word that is longer.

    SentencePiece learns nothing from longer ones.
    """
    limit = parts.MAX_LINE_BYTES
    if 4 * len(line) <= limit:  # A character has four bytes at most.
        return [line]
    content, begin, found = line.encode("utf-8"), 0, []
    while len(content) - begin > limit:
        end = content.rfind(b" ", begin + 1, begin + limit)
        if end < 0:
            end = begin + limit
            while content[end] & 0xC0 == 0x80:  # 10xxxxxx continues a character.
                end -= 1
        found.append(content[begin:end].decode("utf-8").strip())
        begin = end
    return [*found, content[begin:].decode("utf-8").strip()]


def _plain_documents(part: TextPart, report: ReadReport) -> Iterator[RawDocument]:
    are_sentences = part.input_format == "lines"
    texts: list[str] = []
    for line in _lines(part, report):
        line = line.strip()
        if line:
            texts += _divided(line)
        elif texts:
            yield RawDocument(texts, are_sentences)
            texts = []
    if texts:
        yield RawDocument(texts, are_sentences)


def _wikiextractor_documents(part: TextPart, report: ReadReport) -> Iterator[RawDocument]:
    texts: list[str] = []
    title = ""
    for line in _lines(part, report):
        line = line.strip()
        if line.startswith(("<doc ", "</doc>")):
            if texts:
                yield RawDocument(texts, False)
            found = _TITLE.match(line)
            texts, title = [], html.unescape(found[1]) if found else ""
        elif line:
            line = html.unescape(line)
            if texts or line != title:
                texts += _divided(line)
    if texts:
        yield RawDocument(texts, False)


def _json_documents(part: TextPart, text_field: str, report: ReadReport) -> Iterator[RawDocument]:
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
        repaired = replace_surrogates(text)
        if repaired != text:
            report.add("half a surrogate pair, replaced by U+FFFD", where)
        text = repaired
        yield RawDocument(list(split_paragraphs(text)), False)


def raw_documents(block: TextBlock, text_field: str, report: ReadReport) -> Iterator[RawDocument]:
    """The documents of a block before their sentences are split, in order.

    Raises:
      UserError: a part of it is no text.
    """
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
