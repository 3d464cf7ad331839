"""Raw text to paragraphs to sentences, without those that are mostly signs (rows of tables)."""

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
    """A text with U+FFFD in place of halves of surrogate pairs."""
    return _SURROGATES.sub("\ufffd", text)


def split_sentences(paragraph: str, language: str = "en") -> list[str]:
    """Sentences of a paragraph, stripped, without empty ones."""
    import sentencex

    # Whitespace is collapsed first, as normalizing does later: sentencex 1.0 panics on rare spaces.
    sentences = sentencex.segment(language, " ".join(paragraph.split()))
    return [sentence.strip() for sentence in sentences if sentence.strip()]


def useful_sentences(paragraph: str, language: str, report: ReadReport) -> list[str]:
    """The sentences of raw text, without the rules and rows of signs of its tables."""
    sentences = split_sentences(paragraph, language)
    useful = [sentence for sentence in sentences if not _mostly_signs(sentence)]
    if len(useful) < len(sentences):
        reason = "sentence with fewer letters and digits than signs, skipped"
        report.problems[reason] += len(sentences) - len(useful)
    return useful


def _mostly_signs(sentence: str) -> bool:
    # With single spaces, signs that outnumber the rest are more than a quarter of a sentence. There
    # are at most as many as bytes other than ASCII letters, digits, spaces: that is counted fast.
    if 4 * len(sentence.encode("utf-8", "replace").translate(None, _PLAIN)) <= len(sentence):
        return False
    # Quotation marks, dashes and full stops around a word (“No.”) do not count.
    words = sentence.strip(_EDGES)
    if any(map(str.isalpha, words)):
        sentence = words
    signs = sum(map(_stands_alone, _SIGN.findall(sentence)))
    return len(_LETTER_OR_DIGIT.findall(sentence)) < signs


def _stands_alone(character: str) -> bool:
    """Whether a character is neither a mark on a letter, as vowels of Devanagari are, nor one that
    joins letters.
    """
    category = unicodedata.category(character)
    return not category.startswith("M") and category != "Cf"


def split_paragraphs(text: str) -> Iterator[str]:
    """Paragraphs of a raw text, by the rule for jsonl in formats.py."""
    for block in _BLANK_LINES.split(text):
        lines = [line for line in block.splitlines() if line.strip()]
        if all(len(line) in _WRAPPED_WIDTHS for line in lines[:-1]):
            yield " ".join(line.strip() for line in lines)
        else:
            yield from lines


def split_document(text: str, language: str = "en") -> list[str]:
    """Sentences of one raw document, found as in jsonl."""
    report = ReadReport()
    text = replace_surrogates(text.replace("\0", " "))
    return [
        sentence
        for paragraph in split_paragraphs(text)
        for sentence in useful_sentences(paragraph, language, report)
    ]
