"""Splits raw text into paragraphs and sentences; drops rows of tables, which are mostly signs."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator

from data_pipeline.corpus.report import ReadReport

_BLANK_LINES = re.compile(r"\n\s*\n")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LETTER_OR_DIGIT, _SIGN = re.compile(r"[^\W_]"), re.compile(r"[^\w\s]|_")
_PLAIN = (string.ascii_letters + string.digits + " ").encode("ascii")
_WRAPPED_WIDTHS = range(40, 101)
_EDGES = " \"'.,:;!?…-–—―“”„‘’‚«»‹›¿¡。，！？、「」『』《》〈〉।॥။၊"


def replace_surrogates(text: str) -> str:
    """The text with U+FFFD in place of unpaired surrogates."""
    return _SURROGATES.sub("\ufffd", text)


def split_sentences(paragraph: str, language: str = "en") -> list[str]:
    """The sentences of a paragraph, stripped; empty ones are left out."""
    import sentencex

    # sentencex 1.0 panics on rare spaces; normalization would collapse whitespace later anyway.
    sentences = sentencex.segment(language, " ".join(paragraph.split()))
    return [sentence.strip() for sentence in sentences if sentence.strip()]


def useful_sentences(paragraph: str, language: str, report: ReadReport) -> list[str]:
    """The sentences of a raw text, without the rules of tables and rows of signs."""
    sentences = split_sentences(paragraph, language)
    useful = [sentence for sentence in sentences if not _mostly_signs(sentence)]
    if len(useful) < len(sentences):
        reason = "sentence with fewer letters and digits than signs, skipped"
        report.problems[reason] += len(sentences) - len(useful)
    return useful


def _mostly_signs(sentence: str) -> bool:
    # A fast test: with single spaces, signs that outnumber letters and digits make up more than a
    # quarter of a sentence, and are no more than its bytes except ASCII letters, digits, spaces.
    if 4 * len(sentence.encode("utf-8", "replace").translate(None, _PLAIN)) <= len(sentence):
        return False
    # Quotation marks, dashes and full stops around a word (“No.”) do not count.
    words = sentence.strip(_EDGES)
    if any(map(str.isalpha, words)):
        sentence = words
    signs = sum(map(_stands_alone, _SIGN.findall(sentence)))
    return len(_LETTER_OR_DIGIT.findall(sentence)) < signs


def _stands_alone(character: str) -> bool:
    """Whether a character is neither a mark on a letter, such as a vowel sign of Devanagari, nor a
    character that joins letters.
    """
    category = unicodedata.category(character)
    return not category.startswith("M") and category != "Cf"


def split_paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a raw text, split by the rule for jsonl in formats.py."""
    for block in _BLANK_LINES.split(text):
        lines = [line for line in block.splitlines() if line.strip()]
        if all(len(line) in _WRAPPED_WIDTHS for line in lines[:-1]):
            yield " ".join(line.strip() for line in lines)
        else:
            yield from lines


def split_document(text: str, language: str = "en") -> list[str]:
    """The sentences of one raw document, split as in jsonl."""
    report = ReadReport()
    text = replace_surrogates(text.replace("\0", " "))
    return [
        sentence
        for paragraph in split_paragraphs(text)
        for sentence in useful_sentences(paragraph, language, report)
    ]
