"""Spans of words that occur more than once in their sequence, for masks and for questions.

the red car was sold . she saw the red car and sold it
spans with more than one place: `the red car` (0 and 8), `sold` (4 and 12)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from data_pipeline.tokenizers.base import Tokenizer

if TYPE_CHECKING:
    from data_pipeline.pretraining.masking import WordSpans

MAX_TOKENS = 10  # The longest span, as in Splinter (Ram et al. 2021).
_FUNCTION_WORDS = """
a about above after again against all also am an and any are as at be because been before being
below between both but by can could d did do does doing don down during each few for from further
had has have having he her here hers herself him himself his how i if in into is it its itself
just ll m me more most my myself no nor not now o of off on once only or other our ours ourselves
out over own re s same she should so some such t than that the their theirs them themselves then
there these they this those through to too under until up us ve very was we were what when where
which while who whom why will with would you your yours yourself yourselves
"""
_BASE = np.uint64(0x9E3779B97F4A7C15)  # Odd, so that it has an inverse.
_INVERSE = np.uint64(pow(int(_BASE), -1, 1 << 64))


class Occurrences(NamedTuple):
    """M places of recurring spans in R sequences, in order; int64 [M]. They do not overlap."""

    first: np.ndarray  # Number of the first word, and of the word after the last one.
    end: np.ndarray
    span: np.ndarray  # Number of the span: equal for equal words in the same sequence.
    is_first: np.ndarray  # bool [M]: whether it is the first place of the span.


def content_pieces(tokenizer: Tokenizer) -> np.ndarray:
    """bool [V]: pieces with a letter or digit that are not English function words."""
    special, function_words = set(tokenizer.special_ids), set(_FUNCTION_WORDS.split())
    texts = [piece.lstrip("\u2581").removeprefix("##").lower() for piece in tokenizer.pieces]
    return np.array(
        [
            number not in special and any(map(str.isalnum, text)) and text not in function_words
            for number, text in enumerate(texts)
        ]
    )


def find_recurring(tokens: np.ndarray, words: WordSpans, is_content: np.ndarray) -> Occurrences:
    """Finds spans of whole words, up to MAX_TOKENS tokens, that occur more than once in their
    sequence (tokens int32 [R, S]). A span begins and ends with a word that has a piece of
    `is_content` (bool [V]). Longer spans take precedence; each word is part of one span at most.
    """
    hashes = _SpanHashes(tokens, words)
    is_content_word = hashes.number_of(is_content[tokens]) > 0
    recurring: list[np.ndarray] = []  # For each number of words, the first words of such spans.
    starts = np.arange(len(words.starts))
    while len(starts) and len(recurring) < MAX_TOKENS:
        size = len(recurring) + 1
        starts = starts[starts + size <= words.segment_ends[starts]]
        starts = starts[words.ends[starts + size - 1] - words.starts[starts] <= MAX_TOKENS]
        starts = starts[_is_frequent(hashes.of(starts, size))]
        recurring.append(starts)
        # A longer span consists of two overlapping ones: [3 4 7] of n words -> [3] of n + 1.
        starts = starts[np.isin(starts + 1, starts, assume_unique=True)]
    taken = np.zeros(len(words.starts), bool)
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for size in range(len(recurring), 0, -1):
        starts, taken_before = recurring[size - 1], _sums_before(taken)
        is_free = taken_before[starts + size] == taken_before[starts]
        starts = starts[is_free & is_content_word[starts] & is_content_word[starts + size - 1]]
        # In a chain of overlapping places, the first one is kept: [3 4 9] of two words -> [3 9].
        starts = starts[_is_frequent(hashes.of(starts, size))]
        starts = starts[np.diff(starts, prepend=-size) >= size]
        keys = hashes.of(starts, size)
        starts, keys = starts[_is_frequent(keys)], keys[_is_frequent(keys)]
        taken[(starts[:, None] + np.arange(size)).ravel()] = True
        found.append((starts, starts + size, keys))
    if not found:
        nothing = np.zeros(0, np.int64)
        return Occurrences(nothing, nothing, nothing, nothing > 0)
    first, end, keys = map(np.concatenate, zip(*found))
    order = np.argsort(first)
    _, places, span = np.unique(keys[order], return_index=True, return_inverse=True)
    is_first = np.zeros(len(order), bool)
    is_first[places] = True
    return Occurrences(first[order], end[order], span, is_first)


def _sums_before(values: np.ndarray) -> np.ndarray:
    """[1 0 2] -> [0 1 1 3]."""
    return np.concatenate([[0], np.cumsum(values)])


def _is_frequent(keys: np.ndarray) -> np.ndarray:
    """bool [K]: keys that occur more than once."""
    order = np.argsort(keys)
    is_equal = np.diff(keys[order]) == 0
    found = np.zeros(len(keys), bool)
    found[order[1:][is_equal]] = found[order[:-1][is_equal]] = True
    return found


class _SpanHashes:
    """Hashes of spans of words; equal words have different hashes in different sequences."""

    # The hash of tokens t_0 ... t_n is the sum of value(t_i) * BASE ** i, modulo 2 ** 64: the
    # difference of two cumulative sums of the sequence, times a power of the inverse.
    def __init__(self, tokens: np.ndarray, words: WordSpans) -> None:
        self._words = words
        self._rows = np.repeat(np.arange(len(tokens)), np.diff(words.first))
        self._powers = _powers(_INVERSE, tokens.shape[1])
        values = _mixed(tokens.astype(np.uint64)) * _powers(_BASE, tokens.shape[1])
        self._sums = np.pad(np.cumsum(values, axis=1, dtype=np.uint64), [[0, 0], [1, 0]])
        self._keys = _mixed(self._rows.astype(np.uint64) ^ _BASE)

    def of(self, first: np.ndarray, size: int) -> np.ndarray:
        """uint64 [K]: hashes of the spans of `size` words that start at `first` (int64 [K])."""
        rows, start = self._rows[first], self._words.starts[first]
        end = self._words.ends[first + size - 1]
        sums = self._sums[rows, end] - self._sums[rows, start]
        return sums * self._powers[start] + self._keys[first]

    def number_of(self, flags: np.ndarray) -> np.ndarray:
        """int64 [W]: number of tokens in each word for which `flags` (bool [R, S]) is set."""
        before = np.pad(np.cumsum(flags, axis=1), [[0, 0], [1, 0]])
        words = self._words
        return before[self._rows, words.ends] - before[self._rows, words.starts]


def _powers(base: np.uint64, count: int) -> np.ndarray:
    """uint64 [count]: base ** 0, base ** 1, ..., modulo 2 ** 64."""
    factors = np.full(count, base)
    factors[:1] = 1
    return np.cumprod(factors, dtype=np.uint64)


def _mixed(values: np.ndarray) -> np.ndarray:
    """Maps each number to a pseudo-random one (splitmix64)."""
    values = (values + np.uint64(1)) * _BASE
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def choose_copies(
    found: Occurrences,
    words: WordSpans,
    budgets: np.ndarray,
    share: float,
    excluded: np.ndarray | None,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws places to mask, never the first one of a span, for about a share of the budgets (int64
    [R]) in tokens. `excluded` words (int64) are not masked.

    Returns int64 [W], 0 or the (negative) number of the word's place; int64, words that must not be
    masked later: these places and the first ones of their spans; int64 [R], tokens to mask.
    """
    excluded_before = _sums_before(
        np.bincount([] if excluded is None else excluded, minlength=len(words.starts))
    )
    is_allowed = excluded_before[found.end] == excluded_before[found.first]
    later = np.flatnonzero(~found.is_first & is_allowed)
    sizes = words.ends[found.end[later] - 1] - words.starts[found.first[later]]
    rows = np.searchsorted(words.first, found.first[later], side="right") - 1
    order_draws, end_draws = rng.random((2, len(later)))
    order = np.lexsort((order_draws, rows))
    later, sizes, rows = later[order], sizes[order], rows[order]
    used = sums_in_rows(sizes, rows)
    # A span is chosen if a random point in it is within the share, which is then met on average.
    point = used - end_draws * sizes
    is_chosen = (point <= share * budgets[rows]) & (used <= budgets[rows])
    chosen = later[is_chosen]
    masked, number = ranges(found.first[chosen], found.end[chosen])
    copies = np.zeros(len(words.starts), np.int64)
    copies[masked] = -1 - number
    first = np.flatnonzero(found.is_first & np.isin(found.span, found.span[chosen]))
    shown, _ = ranges(found.first[first], found.end[first])
    num_tokens = np.bincount(rows[is_chosen], sizes[is_chosen], minlength=len(budgets))
    return copies, np.concatenate([masked, shown]), num_tokens.astype(np.int64)


def ranges(first: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The integers in ranges, and the number of the range of each: 3:5, 8:9 -> [3 4 8], [0 0 1]."""
    number = np.repeat(np.arange(len(first)), end - first)
    inside = np.arange(len(number)) - _sums_before(end - first)[number]
    return first[number] + inside, number


def sums_in_rows(sizes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Cumulative sums of sizes in each row: sizes [2 1 3 1], rows [0 0 1 1] -> [2 3 3 4]."""
    sums = _sums_before(sizes)
    return sums[1:] - sums[np.searchsorted(rows, rows)]
