"""Masked language model targets for many sequences at once: n-grams of whole words, 80/10/10.

Follows google-research/albert's create_masked_lm_predictions with its bugs repaired: n-grams never
cross [SEP], every choice comes from one generator, special pieces are never drawn as replacement.

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
    """The rule by which tokens are chosen for prediction and replaced."""

    rate: float  # Share of the tokens (special ones included) to predict, 0 to 1.
    max_predictions: int  # P, the largest number of tokens to predict in a sequence.
    ngram: int  # Longest n-gram, in words.
    favor_shorter: bool  # P(n) is proportional to 1/n; else those probabilities in reverse order.
    by_span: bool  # The 80/10/10 is drawn once per n-gram, otherwise for each piece.
    mask_id: int
    replacement_ids: np.ndarray  # int32 [R], the ids from which random replacements are drawn.
    whole_words: bool = True  # Otherwise every piece counts as a word.
    excluded_id: int | None = None  # An id whose words are never predicted.
    recurring_share: float = 0.0  # Share of the budget for words that stand earlier, too.
    is_content: np.ndarray | None = None  # bool [V], see `recurring`; needed for such a share.


class WordSpans(NamedTuple):
    """The words of R sequences as spans of tokens, W in all, numbered through all sequences."""

    starts: np.ndarray  # int64 [W], word w is tokens[starts[w]:ends[w]] of its sequence.
    ends: np.ndarray
    segment_ends: np.ndarray  # int64 [W], the first word after the segment that word w is in.
    first: np.ndarray  # int64 [R + 1], sequence r has words first[r] to first[r + 1] - 1.


def replacement_ids(vocab_size: int, special_ids: tuple[int, ...]) -> np.ndarray:
    """int32: the ids of all pieces but the special ones, ascending."""
    return np.setdiff1d(np.arange(vocab_size, dtype=np.int32), np.array(special_ids, np.int32))


def prediction_budgets(num_tokens: np.ndarray, rate: float, max_predictions: int) -> np.ndarray:
    """int64 [R]: number of tokens to predict in sequences of `num_tokens` (int [R]) tokens."""
    # Rounds half to even, as the reference does: 0.15 * 30 = 4.5 -> 4.
    return np.clip(np.round(num_tokens * rate).astype(np.int64), 1, max_predictions)


def ngram_thresholds(ngram: int, favor_shorter: bool) -> np.ndarray:
    """float64 [ngram]: P(n <= 1), P(n <= 2), ..., 1; for 3, shorter favored: 6/11, 9/11, 1."""
    weights = 1.0 / np.arange(1, ngram + 1)
    cumulative = np.cumsum(weights if favor_shorter else weights[::-1])
    return cumulative / cumulative[-1]


def find_words(boundaries: np.ndarray, is_special: np.ndarray) -> WordSpans:
    """The words of sequences; special pieces are not words. `boundaries` (bool [R, S]) tells where
    a word or a special piece starts, `is_special` (bool [R, S]) where [CLS] and [SEP] are; both are
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
    words_before = np.cumsum(~special)  # [0 1 1 2 2]: of each place.
    first = np.concatenate([[0], words_before[np.cumsum(per_row) - 1]])
    next_special = np.flatnonzero(special)[np.cumsum(special)[word]]  # [2 4]: of each word.
    # After a word comes another boundary of its sequence: its last token is [SEP].
    return WordSpans(columns[word], columns[word + 1], words_before[next_special], first)


def _words_with(is_token: np.ndarray, boundaries: np.ndarray, is_special: np.ndarray) -> np.ndarray:
    """int64: the words, as `find_words` counts them, that hold one of the tokens (bool [R, S])."""
    words_before = np.cumsum((boundaries & ~is_special).reshape(-1))
    return words_before[is_token.reshape(-1)] - 1


def choose_ngrams(
    words: WordSpans,
    budgets: np.ndarray,
    thresholds: np.ndarray,
    draw: Callable[[int], np.ndarray],
    excluded: np.ndarray | None = None,
) -> np.ndarray:
    """Chooses the words to predict: int64 [W], 0, or the round, from 1, in which the word's n-gram
    was chosen; in one sequence n-grams have different numbers.

    In each sequence words are visited in random order; each starts an n-gram, shortened until it
    fits what is left of the budget, and passed over when a word of it is taken already. All
    sequences go on side by side: in round k each visits the word that its draw names.

        one sequence of words with 1, 3, 1 tokens, budget 2; draws name bigrams from word 1, 2, 0
        round 1: word 1 has 3 tokens, which is too much    -> 0 0 0
        round 2: word 2 is the last, a bigram of one word  -> 0 0 2
        round 3: word 0 alone fits the rest of the budget  -> 3 0 2

    Args:
      words: the words of R sequences.
      budgets: int64 [R], largest number of tokens to predict.
      thresholds: float64 [N], see `ngram_thresholds`.
      draw: round -> float [2, R] in [0, 1): which word, which n.
      excluded: int64, words that no n-gram may hold.
    """
    first, count = words.first[:-1], np.diff(words.first)
    taken = np.zeros(len(words.starts), np.int64)
    # An excluded word counts as taken from the start, so no n-gram holds it.
    if excluded is not None:
        taken[excluded] = _EXCLUDED
    visited = np.zeros(len(words.starts), bool)
    left, unvisited = budgets.copy(), count.copy()
    active = np.flatnonzero((count > 0) & (left > 0))
    sizes = np.arange(len(thresholds))  # n - 1
    number = 0
    while len(active):
        number += 1
        # Sequences that are done draw, too: what a sequence draws does not depend on its neighbors.
        draws = draw(number - 1)[:, active]
        word = first[active] + (draws[0] * count[active]).astype(np.int64)
        # A word that was visited before is passed over: shuffling each sequence would need a draw
        # for each of its words, and the budget is spent before most are visited.
        fresh = np.flatnonzero(~visited[word])
        rows, word = active[fresh], word[fresh]
        visited[word] = True
        unvisited[rows] -= 1
        # n is drawn among those that the segment has room for: the draw is scaled to
        # P(n <= available), and the word n - 1 places on belongs to the n-gram from P(n - 1) on.
        available = np.minimum(words.segment_ends[word] - word, len(thresholds))
        wanted = draws[1, fresh] * thresholds[available - 1]
        members = word[:, None] + np.minimum(sizes, available[:, None] - 1)  # [rows, N]
        spans = words.ends[members] - words.starts[word][:, None]
        in_ngram = np.empty(members.shape, bool)
        in_ngram[:, 0] = True
        in_ngram[:, 1:] = wanted[:, None] >= thresholds[:-1]
        # Spans grow with n, so what fits the budget is a shorter n-gram, or none.
        in_ngram &= (sizes < available[:, None]) & (spans <= left[rows][:, None])
        size = np.count_nonzero(in_ngram, axis=1)
        # No second try with fewer words where one is taken: the reference passes over it, too.
        is_free = ~np.any((taken[members] > 0) & in_ngram, axis=1) & (size > 0)
        accepted = np.flatnonzero(is_free)
        taken[members[accepted][in_ngram[accepted]]] = number
        left[rows[accepted]] -= spans[accepted, size[accepted] - 1]
        active = active[(left[active] > 0) & (unvisited[active] > 0)]
    if excluded is not None:
        taken[excluded] = 0
    return taken


class Masked(NamedTuple):
    """Masked sequences, with M predictions in all."""

    tokens: np.ndarray  # int32 [R, S], with masks and replacements.
    rows: np.ndarray  # int64 [M], sequence of each prediction, ascending.
    positions: np.ndarray  # int64 [M], its position, ascending within a sequence.
    labels: np.ndarray  # int32 [M], the ids that stood there.


def replace_tokens(
    labels: np.ndarray, same_draw: np.ndarray, rule: MaskingRule, rng: np.random.Generator
) -> np.ndarray:
    """int32 [M], inputs in place of labels (int32 [M]): 80 % [MASK], 10 % the label, 10 % a random
    piece. Where `same_draw` (bool [M]), a label shares the draw of the one before it.
    """
    # Both draws are made for every label, needed or not, so that their number depends on nothing
    # but the number of labels. same_draw [F, T, F]: draws 0, 0, 1.
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
    """Copies of sequences (tokens int32 [R, S], of `lengths` tokens each, special ones included)
    with masks, and the predictions. `boundaries`, `is_special`: see `find_words`; words of `shown`
    (bool [R, S]) are never predicted.
    """
    is_token = np.arange(tokens.shape[1]) < lengths[:, None]
    # Where every piece is a word, each has a boundary, and all below works on words alone.
    if not rule.whole_words:
        boundaries = is_token
    words = find_words(boundaries, is_special)
    if rule.excluded_id is not None:
        unknown = (tokens == rule.excluded_id) & is_token
        shown = unknown if shown is None else shown | unknown
    excluded = None if shown is None else _words_with(shown, boundaries, is_special)
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
    # Chosen words to tokens: words of 3 and 1 tokens at 4 and 9 -> positions 4, 5, 6, 9.
    chosen = np.flatnonzero(ngrams)
    sizes = words.ends[chosen] - words.starts[chosen]
    word = np.repeat(chosen, sizes)  # [M]
    inside = np.arange(len(word)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.repeat(np.searchsorted(words.first, chosen, side="right") - 1, sizes)
    positions = words.starts[word] + inside
    labels = tokens[rows, positions]
    same_ngram = np.zeros(len(word), bool)
    if rule.by_span:
        # Chosen tokens are in order, so those of an n-gram are neighbors with one round number.
        same_ngram[1:] = (rows[1:] == rows[:-1]) & (ngrams[word[1:]] == ngrams[word[:-1]])
    replaced = tokens.copy()
    replaced[rows, positions] = replace_tokens(labels, same_ngram, rule, rng)
    return Masked(replaced, rows, positions, labels)
