"""Masked language modeling targets for many sequences at once: n-grams of whole words, 80/10/10.

Follows google-research/albert's create_masked_lm_predictions, but fixes its bugs: n-grams never
cross [SEP], all choices come from one generator, special pieces are never drawn as replacements.

    [CLS] ▁the ▁un believ able ▁cat [SEP] ▁it ▁sat [SEP]    10 tokens, a budget of 2
    words       0   1             2          3   4           word 1 does not fit; say 2 and 4
    [CLS] ▁the ▁un believ able [MASK] [SEP] ▁it ▁dog [SEP]  10 % are replaced by a random piece
    masked_lm_positions 5, 8; masked_lm_ids ▁cat, ▁sat
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from data_pipeline.pretraining import recurring

MASK_PROBABILITY, KEEP_PROBABILITY = 0.8, 0.1
_EXCLUDED = 1


@dataclasses.dataclass(frozen=True, eq=False)
class MaskingRule:
    """The rule for choosing tokens to predict, and for replacing them."""

    rate: float  # Share of the tokens (special ones included) to predict, 0 to 1.
    max_predictions: int  # P, the largest number of tokens to predict in a sequence.
    ngram: int  # Longest n-gram, in words.
    favor_shorter: bool  # P(n) is proportional to 1/n; False: probabilities in reverse order.
    by_span: bool  # The 80/10/10 choice is drawn once per n-gram; False: for each piece.
    mask_id: int
    replacement_ids: np.ndarray  # int32 [R], the ids from which random replacements are drawn.
    whole_words: bool = True  # False: every piece counts as a word.
    excluded_id: int | None = None  # Words with this id are never predicted.
    recurring_share: float = 0.0  # Share of the budget for words that also occur earlier.
    is_content: np.ndarray | None = None  # bool [V], see `recurring`; needed for recurring_share.


class WordSpans(NamedTuple):
    """The words of R sequences as spans of tokens, W in total, numbered across all sequences."""

    starts: np.ndarray  # int64 [W], word w is tokens[starts[w]:ends[w]] of its sequence.
    ends: np.ndarray
    segment_ends: np.ndarray  # int64 [W], the first word after the segment of word w.
    first: np.ndarray  # int64 [R + 1], sequence r has words first[r] to first[r + 1] - 1.


def replacement_ids(vocab_size: int, special_ids: tuple[int, ...]) -> np.ndarray:
    """int32: the ids of all pieces except special ones, ascending."""
    return np.setdiff1d(np.arange(vocab_size, dtype=np.int32), np.array(special_ids, np.int32))


def prediction_budgets(num_tokens: np.ndarray, rate: float, max_predictions: int) -> np.ndarray:
    """int64 [R]: number of tokens to predict in sequences of `num_tokens` (int [R]) tokens."""
    # Rounds half to even, like the reference: 0.15 * 30 = 4.5 -> 4.
    return np.clip(np.round(num_tokens * rate).astype(np.int64), 1, max_predictions)


def ngram_thresholds(ngram: int, favor_shorter: bool) -> np.ndarray:
    """float64 [ngram]: P(n <= 1), P(n <= 2), ..., 1; for 3 with favor_shorter: 6/11, 9/11, 1."""
    weights = 1.0 / np.arange(1, ngram + 1)
    cumulative = np.cumsum(weights if favor_shorter else weights[::-1])
    return cumulative / cumulative[-1]


def find_words(boundaries: np.ndarray, is_special: np.ndarray) -> WordSpans:
    """The words of sequences; special pieces are not words. `boundaries` (bool [R, S]) is True
    where a word or a special piece starts, `is_special` (bool [R, S]) at [CLS] and [SEP]; both are
    False in padding. Every sequence ends with [SEP].

        tokens       [CLS] ▁un believ able [SEP] ▁yes [SEP] (padding)
        boundaries     1    1    0     0     1     1    1    0
        is_special     1    0    0     0     1     0    1    0
        -> starts [1, 5], ends [4, 6], segment_ends [1, 2], first [0, 2]
    """
    count, size = boundaries.shape
    places = np.flatnonzero(boundaries)  # [0 1 4 5 6] above: words and special pieces.
    per_row = np.count_nonzero(boundaries, axis=1)
    columns = places - np.repeat(size * np.arange(count), per_row)
    special = is_special.reshape(-1)[places]
    word = np.flatnonzero(~special)
    words_before = np.cumsum(~special)  # [0 1 1 2 2]: for each place.
    first = np.concatenate([[0], words_before[np.cumsum(per_row) - 1]])
    next_special = np.flatnonzero(special)[np.cumsum(special)[word]]  # [2 4]: for each word.
    # Each word is followed by another boundary, since every sequence ends with [SEP].
    return WordSpans(columns[word], columns[word + 1], words_before[next_special], first)


def choose_ngrams(
    words: WordSpans,
    budgets: np.ndarray,
    thresholds: np.ndarray,
    draw: Callable[[int], np.ndarray],
    excluded: np.ndarray | None = None,
) -> np.ndarray:
    """Chooses the words to predict: int64 [W], 0 or the round, from 1, in which the word's n-gram
    was chosen; within a sequence, each n-gram has a different number.

    In each sequence, words are visited in random order. Each starts an n-gram, which is shortened
    to fit the remaining budget, and skipped if it contains a word that is already taken. Sequences
    are processed in parallel: in round k, each visits the word given by its draw.

        one sequence of words with 1, 3, 1 tokens, budget 2; draws: bigrams from words 1, 2, 0
        round 1: word 1 has 3 tokens, which is too many    -> 0 0 0
        round 2: word 2 is the last, a bigram of one word  -> 0 0 2
        round 3: word 0 alone fits the remaining budget    -> 3 0 2

    Args:
      words: the words of R sequences.
      budgets: int64 [R], largest number of tokens to predict.
      thresholds: float64 [N], see `ngram_thresholds`.
      draw: round -> float [2, R] in [0, 1), which select the word and n.
      excluded: int64, words that no n-gram may contain.
    """
    first, count = words.first[:-1], np.diff(words.first)
    taken = np.zeros(len(words.starts), np.int64)
    # Excluded words count as taken from the start, so no n-gram contains them.
    if excluded is not None:
        taken[excluded] = _EXCLUDED
    visited = np.zeros(len(words.starts), bool)
    left, unvisited = budgets.copy(), count.copy()
    active = np.flatnonzero((count > 0) & (left > 0))
    sizes = np.arange(len(thresholds))  # n - 1
    number = 0
    while len(active):
        number += 1
        # Finished sequences draw as well, so that draws do not depend on other sequences.
        draws = draw(number - 1)[:, active]
        word = first[active] + (draws[0] * count[active]).astype(np.int64)
        # Words that were already visited are skipped. Shuffling each sequence would need a draw for
        # every word, although the budget is spent before most words are visited.
        fresh = np.flatnonzero(~visited[word])
        rows, word = active[fresh], word[fresh]
        visited[word] = True
        unvisited[rows] -= 1
        # n is drawn from the lengths that fit into the segment: the draw is scaled to
        # P(n <= available), and the n-th word is included if the draw is at least P(n - 1).
        available = np.minimum(words.segment_ends[word] - word, len(thresholds))
        wanted = draws[1, fresh] * thresholds[available - 1]
        members = word[:, None] + np.minimum(sizes, available[:, None] - 1)  # [rows, N]
        spans = words.ends[members] - words.starts[word][:, None]
        in_ngram = np.empty(members.shape, bool)
        in_ngram[:, 0] = True
        in_ngram[:, 1:] = wanted[:, None] >= thresholds[:-1]
        # Spans grow with n, so the words that fit the budget form a shorter n-gram, or none.
        in_ngram &= (sizes < available[:, None]) & (spans <= left[rows][:, None])
        size = np.count_nonzero(in_ngram, axis=1)
        # If a word is taken, there is no second try with fewer words, as in the reference.
        is_free = ~np.any((taken[members] > 0) & in_ngram, axis=1) & (size > 0)
        accepted = np.flatnonzero(is_free)
        taken[members[accepted][in_ngram[accepted]]] = number
        left[rows[accepted]] -= spans[accepted, size[accepted] - 1]
        active = active[(left[active] > 0) & (unvisited[active] > 0)]
    if excluded is not None:
        taken[excluded] = 0
    return taken


class Masked(NamedTuple):
    """Masked sequences, with M predictions in total."""

    tokens: np.ndarray  # int32 [R, S], with masks and replacements.
    rows: np.ndarray  # int64 [M], sequence of each prediction, ascending.
    positions: np.ndarray  # int64 [M], position of each, ascending within a sequence.
    labels: np.ndarray  # int32 [M], the original ids.


def replace_tokens(
    labels: np.ndarray, same_draw: np.ndarray, rule: MaskingRule, rng: np.random.Generator
) -> np.ndarray:
    """int32 [M], inputs that replace labels (int32 [M]): 80 % [MASK], 10 % the label, 10 % a random
    piece. If `same_draw` (bool [M]) is True, a label shares the draw of the previous one.
    """
    # Both draws are made for every label, so that their number depends only on the number of
    # labels. same_draw [F, T, F]: draws 0, 0, 1.
    draws = rng.random(len(labels))[np.cumsum(~same_draw) - 1]
    places = (rng.random(len(labels)) * len(rule.replacement_ids)).astype(np.int64)
    kept_or_random = np.where(
        draws < MASK_PROBABILITY + KEEP_PROBABILITY, labels, rule.replacement_ids[places]
    )
    return np.where(draws < MASK_PROBABILITY, np.int32(rule.mask_id), kept_or_random)


def mask_sequences(
    tokens: np.ndarray,
    boundaries: np.ndarray,
    is_special: np.ndarray,
    lengths: np.ndarray,
    rule: MaskingRule,
    rng: np.random.Generator,
    shown: np.ndarray | None = None,
) -> Masked:
    """Masks copies of sequences (tokens int32 [R, S], of `lengths` tokens each, including special
    ones). `boundaries`, `is_special`: see `find_words`; words with tokens in `shown` (bool [R, S])
    are never predicted.
    """
    is_token = np.arange(tokens.shape[1]) < lengths[:, None]
    # If every piece counts as a word, each has a boundary, and the code below is the same.
    if not rule.whole_words:
        boundaries = is_token
    words = find_words(boundaries, is_special)
    if rule.excluded_id is not None:
        unknown = (tokens == rule.excluded_id) & is_token
        shown = unknown if shown is None else shown | unknown
    excluded = None
    if shown is not None:  # The numbers of the words that contain a shown token.
        excluded = np.cumsum(boundaries & ~is_special)[shown.reshape(-1)] - 1
    budgets = prediction_budgets(lengths, rule.rate, rule.max_predictions)
    copies = np.zeros(len(words.starts), np.int64)
    if rule.recurring_share:
        assert rule.is_content is not None
        found = recurring.find_recurring(tokens, words, rule.is_content)
        copies, kept, used = recurring.choose_copies(
            found, words, budgets, rule.recurring_share, excluded, rng
        )
        excluded = np.union1d(kept, [] if excluded is None else excluded).astype(np.int64)
        budgets = budgets - used
    thresholds = ngram_thresholds(rule.ngram, rule.favor_shorter)
    ngrams = copies + choose_ngrams(
        words, budgets, thresholds, lambda unused_round: rng.random((2, len(tokens))), excluded
    )
    # Positions of the chosen words' tokens: words of 3 and 1 tokens at 4 and 9 -> 4, 5, 6, 9.
    chosen = np.flatnonzero(ngrams)
    positions, number = recurring.ranges(words.starts[chosen], words.ends[chosen])
    word = chosen[number]  # [M]
    rows = (np.searchsorted(words.first, chosen, side="right") - 1)[number]
    labels = tokens[rows, positions]
    same_ngram = np.zeros(len(word), bool)
    if rule.by_span:
        # Chosen tokens are in order, so those of an n-gram are adjacent and have the same number.
        same_ngram[1:] = (rows[1:] == rows[:-1]) & (ngrams[word[1:]] == ngrams[word[:-1]])
    replaced = tokens.copy()
    replaced[rows, positions] = replace_tokens(labels, same_ngram, rule, rng)
    return Masked(replaced, rows, positions, labels)
