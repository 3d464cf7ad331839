"""Normalization of raw text before SentencePiece.

Follows google-research/albert's `preprocess_text`: whitespace is collapsed, NFKD is applied,
combining characters are dropped, and the text is optionally lower-cased. Quotes are unchanged.
In TensorFlow graphs, `graph.normalize_graph` gives the same strings.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np

Ranges = tuple[tuple[int, int], ...]  # First and last code point of each range.
REPLACEMENT = "\ufffd"
# Code points that NFKD or lower-casing changes only in some Unicode versions from 12 to 16
# (recently added letters), and NUL, at which tf.strings.lower stops. Python and TensorFlow use
# different versions, so both replace these by U+FFFD, which SentencePiece reads as a space.
UNSTABLE_RANGES = (
    (0x0, 0x0), (0x2C2F, 0x2C2F), (0xA7C0, 0xA7C0), (0xA7D0, 0xA7D0), (0xA7D6, 0xA7D6),
    (0xA7D8, 0xA7D8), (0xA7F2, 0xA7F4), (0xAB69, 0xAB69), (0x10570, 0x1057A), (0x1057C, 0x1058A),
    (0x1058C, 0x10592), (0x10594, 0x10595), (0x105C9, 0x105C9), (0x105E4, 0x105E4),
    (0x10781, 0x10785), (0x10787, 0x107B0), (0x107B2, 0x107BA), (0x11383, 0x11383),
    (0x11385, 0x11385), (0x1138E, 0x1138E), (0x11391, 0x11391), (0x113C5, 0x113C5),
    (0x113C7, 0x113C8), (0x11938, 0x11938), (0x16121, 0x16128), (0x16D68, 0x16D6A),
    (0x1CCD6, 0x1CCF9), (0x1E030, 0x1E06D), (0x1FBF0, 0x1FBF9),
)  # fmt: skip
SURROGATES = (0xD800, 0xDFFF)
_REPLACED_RANGES = (*UNSTABLE_RANGES, SURROGATES)
_KEEP, _DROP, _REPLACE = range(3)


def ranges_where(predicate: Callable[[str], bool], stop: int = sys.maxunicode + 1) -> Ranges:
    """Inclusive ranges of code points below `stop` for which `predicate` holds."""
    ranges: list[tuple[int, int]] = []
    for code in range(stop):
        if not predicate(chr(code)):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return tuple(ranges)


@functools.cache
def combining_ranges() -> Ranges:
    """Ranges of code points whose canonical combining class is not zero; none is above plane 1."""
    return ranges_where(lambda character: unicodedata.combining(character) != 0, 0x20000)


def is_mark(character: str) -> bool:
    """Whether a character is a mark on the previous one, such as a separate accent."""
    return unicodedata.category(character) in ("Mn", "Me")


@functools.cache
def mark_ranges() -> Ranges:
    """Ranges of the code points that are marks."""
    return ranges_where(is_mark)


@functools.cache
def whitespace_ranges() -> Ranges:
    """Ranges of code points at which `str.split()` splits; all are in plane 0."""
    return ranges_where(str.isspace, 0x10000)


def python_class(ranges: Ranges) -> str:
    """A character class in the syntax of Python's `re`."""
    return "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges) + "]"


_UNSTABLE = re.compile(python_class(_REPLACED_RANGES))


@functools.cache
def _combining_pattern() -> re.Pattern:
    return re.compile(python_class(combining_ranges()) + "+")


def normalize(
    text: str, lower: bool = True, join_quotes: bool = False, strip_accents: bool = True
) -> str:
    """Normalizes one string as the published models expect: " Ça  va\\n" -> "ca va".

    NUL, unpaired surrogates and UNSTABLE_RANGES become U+FFFD. `join_quotes` writes `` and '' as ",
    as Hugging Face's tokenizer does; `strip_accents=False` is its `keep_accents`.
    """
    text = " ".join(text.replace("\0", REPLACEMENT).split())
    if join_quotes:
        text = text.replace("``", '"').replace("''", '"')
    if not text.isascii():
        text = _UNSTABLE.sub(REPLACEMENT, text)
    if strip_accents and not text.isascii():
        text = _combining_pattern().sub("", unicodedata.normalize("NFKD", text))
    return text.lower() if lower else text


@functools.cache
def _actions() -> np.ndarray:
    """uint8 by code point: one of _KEEP, _DROP and _REPLACE for each character."""
    actions = np.full(sys.maxunicode + 1, _KEEP, np.uint8)
    for ranges, action in ((combining_ranges(), _DROP), (_REPLACED_RANGES, _REPLACE)):
        for first, last in ranges:
            actions[first : last + 1] = action
    return actions


def _with_action(text: str, action: int, replacement: str) -> str:
    """The text with `replacement`, a character or "", for each character with this action."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    is_concerned = _actions()[points] == action
    if not is_concerned.any():
        return text
    if replacement:
        points = np.where(is_concerned, np.uint32(ord(replacement)), points)
    else:
        points = points[~is_concerned]
    return points.tobytes().decode("utf-32-le")


def normalize_many(
    texts: Sequence[str], lower: bool = True, join_quotes: bool = False, strip_accents: bool = True
) -> list[str]:
    """`normalize` for many strings at once, which is faster."""
    if join_quotes:
        return [normalize(text, lower, join_quotes, strip_accents) for text in texts]
    if not texts:
        return []
    # No line breaks are left, so texts can be joined by line breaks and processed at once.
    found = [" ".join(text.split()) for text in texts]
    special = [i for i, text in enumerate(found) if not text.isascii() or "\0" in text]
    if special:
        text = _with_action("\n".join(found[i] for i in special), _REPLACE, REPLACEMENT)
        if strip_accents:
            text = _with_action(unicodedata.normalize("NFKD", text), _DROP, "")
        for i, line in zip(special, text.split("\n")):
            found[i] = line
    if not lower:
        return found
    # Lower-casing a letter may depend on its neighbors, but not across a line break.
    return "\n".join(found).lower().split("\n")
