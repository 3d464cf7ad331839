"""Masked language model targets for many sequences at once: n-grams of whole words, 80/10/10.

Follows google-research/albert's create_masked_lm_predictions with its bugs repaired: n-grams never
cross [SEP], every choice comes from one generator, special pieces are never drawn as replacement.
The same in a graph, for masks drawn while training: dynamic_masking.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

MASK_PROBABILITY, KEEP_PROBABILITY = 0.8, 0.1
_EXCLUDED = 1


@dataclasses.dataclass(frozen=True, eq=False)
class MaskingRule:
    """What is masked and by what.

    Attributes:
      rate: share of the tokens (special ones included) to predict.
      max_predictions: at most so many in a sequence.
      ngram: longest n-gram, in words.
      favor_shorter: P(n) is proportional to 1/n; otherwise those probabilities in reverse order.
      by_span: the 80/10/10 is drawn once per n-gram, otherwise for each piece.
      mask_id: id of [MASK].
      replacement_ids: int32 [R], the ids from which random replacements are drawn.
      whole_words: words are masked as a whole; otherwise every piece counts as a word.
      never: an id that is never predicted, nor the word that it is in; None: there is none.
    """

    rate: float
    max_predictions: int
    ngram: int
    favor_shorter: bool
    by_span: bool
    mask_id: int
    replacement_ids: np.ndarray
    whole_words: bool = True
    never: int | None = None


class Words(NamedTuple):
    """The words of R sequences, W in all, one sequence after the other.

    Attributes:
      starts, ends: int64 [W], word w is tokens[starts[w]:ends[w]] of its sequence.
      segment_ends: int64 [W], the first word after the segment that word w is in.
      first: int64 [R + 1], sequence r has words first[r] to first[r + 1] - 1.
    """

    starts: np.ndarray
    ends: np.ndarray
    segment_ends: np.ndarray
    first: np.ndarray


def replacement_ids(vocab_size: int, special_ids: tuple[int, ...]) -> np.ndarray:
    """Ids of all pieces that stand for text, int32."""
    return np.setdiff1d(np.arange(vocab_size, dtype=np.int32), np.array(special_ids, np.int32))


def prediction_budgets(num_tokens: np.ndarray, rate: float, max_predictions: int) -> np.ndarray:
    """How many tokens to predict; rounds half to even, as the reference does."""
    return np.clip(np.round(num_tokens * rate).astype(np.int64), 1, max_predictions)


def ngram_thresholds(ngram: int, favor_shorter: bool) -> np.ndarray:
    """float64 [ngram]: P(n <= 1), P(n <= 2), ..., 1."""
    weights = 1.0 / np.arange(1, ngram + 1)
    cumulative = np.cumsum(weights if favor_shorter else weights[::-1])
    return cumulative / cumulative[-1]


def find_words(boundaries: np.ndarray, is_special: np.ndarray) -> Words:
    """Words of sequences; special pieces are no words.

    Args:
      boundaries: bool [R, S], True where a word or a special piece starts; False in padding.
      is_special: bool [R, S], True at [CLS] and [SEP]; the last token of a sequence is [SEP].
    """
    count, size = boundaries.shape
    places = np.flatnonzero(boundaries)
    per_row = np.count_nonzero(boundaries, axis=1)
    columns = places - np.repeat(size * np.arange(count), per_row)
    special = is_special.reshape(-1)[places]
    word = np.flatnonzero(~special)
    words_before = np.cumsum(~special)  # Of each special piece, in the order of all boundaries.
    first = np.concatenate([[0], words_before[np.cumsum(per_row) - 1]])
    next_special = np.flatnonzero(special)[np.cumsum(special)[word]]
    # After a word comes another boundary of its sequence: the last one is [SEP].
    return Words(columns[word], columns[word + 1], words_before[next_special], first)


def _words_with(is_token: np.ndarray, boundaries: np.ndarray, is_special: np.ndarray) -> np.ndarray:
    """int64: the words, as `find_words` counts them, that hold one of the tokens (bool [R, S])."""
    words_before = np.cumsum((boundaries & ~is_special).reshape(-1))
    return words_before[is_token.reshape(-1)] - 1


def choose_ngrams(
    words: Words,
    budgets: np.ndarray,
    thresholds: np.ndarray,
    draw: Callable[[int], np.ndarray],
    excluded: np.ndarray | None = None,
) -> np.ndarray:
    """Words to predict: int64 [W], 0 or the number of the n-gram in its sequence, from 1.

    In each sequence words are visited in random order; each starts an n-gram, shortened until it
    fits what is left of the budget, and passed over when a word of it is taken already. All
    sequences go on side by side: in round k each visits the word that its draw names, unless it
    was visited before, so that the order is uniform.

    Args:
      words: of R sequences.
      budgets: int64 [R], tokens to predict at most.
      thresholds: float64 [N], see `ngram_thresholds`; over the words that are left in the segment
        the distribution is renormalized.
      draw: round -> float [2, R] in [0, 1): which word, which n.
      excluded: int64, words that no n-gram may hold.
    """
    first, count = words.first[:-1], np.diff(words.first)
    taken = np.zeros(len(words.starts), np.int64)
    if excluded is not None:
        taken[excluded] = _EXCLUDED
    visited = np.zeros(len(words.starts), bool)
    left, unvisited = budgets.copy(), count.copy()
    active = np.flatnonzero((count > 0) & (left > 0))
    sizes = np.arange(len(thresholds))  # n - 1
    number = 0
    while len(active):
        number += 1
        draws = draw(number - 1)[:, active]
        word = first[active] + (draws[0] * count[active]).astype(np.int64)
        fresh = np.flatnonzero(~visited[word])
        rows, word = active[fresh], word[fresh]
        visited[word] = True
        unvisited[rows] -= 1
        available = np.minimum(words.segment_ends[word] - word, len(thresholds))
        wanted = draws[1, fresh] * thresholds[available - 1]
        members = word[:, None] + np.minimum(sizes, available[:, None] - 1)  # [rows, N]
        spans = words.ends[members] - words.starts[word][:, None]
        in_ngram = np.empty(members.shape, bool)
        in_ngram[:, 0] = True
        in_ngram[:, 1:] = wanted[:, None] >= thresholds[:-1]
        in_ngram &= (sizes < available[:, None]) & (spans <= left[rows][:, None])
        size = np.count_nonzero(in_ngram, axis=1)
        is_free = ~np.any((taken[members] > 0) & in_ngram, axis=1) & (size > 0)
        accepted = np.flatnonzero(is_free)
        taken[members[accepted][in_ngram[accepted]]] = number
        left[rows[accepted]] -= spans[accepted, size[accepted] - 1]
        active = active[(left[active] > 0) & (unvisited[active] > 0)]
    if excluded is not None:
        taken[excluded] = 0
    return taken


class Masked(NamedTuple):
    """Masked sequences.

    Attributes:
      tokens: int32 [R, S], with masks and replacements.
      rows, positions, labels: int64 [M], int64 [M], int32 [M]: what is to be predicted, ascending.
    """

    tokens: np.ndarray
    rows: np.ndarray
    positions: np.ndarray
    labels: np.ndarray


def replace_tokens(
    labels: np.ndarray, same_draw: np.ndarray, rule: MaskingRule, rng: np.random.Generator
) -> np.ndarray:
    """What stands in place of labels: 80 % [MASK], 10 % the label, 10 % a random piece.

    Args:
      labels: int32 [M].
      same_draw: bool [M], True where a label shares the 80/10/10 with the one before it.
    """
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
) -> Masked:
    """Chooses and replaces the tokens to predict.

    Args:
      tokens: int32 [R, S].
      boundaries, is_special: bool [R, S], see `find_words`.
      lengths: int64 [R], tokens of each sequence.
    """
    is_token = np.arange(tokens.shape[1]) < lengths[:, None]
    if not rule.whole_words:
        boundaries = is_token
    words = find_words(boundaries, is_special)
    excluded = None
    if rule.never is not None:
        excluded = _words_with((tokens == rule.never) & is_token, boundaries, is_special)
    budgets = prediction_budgets(lengths, rule.rate, rule.max_predictions)
    thresholds = ngram_thresholds(rule.ngram, rule.favor_shorter)
    ngrams = choose_ngrams(
        words, budgets, thresholds, lambda unused_round: rng.random((2, len(tokens))), excluded
    )
    chosen = np.flatnonzero(ngrams)
    sizes = words.ends[chosen] - words.starts[chosen]
    word = np.repeat(chosen, sizes)  # [M]
    inside = np.arange(len(word)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.repeat(np.searchsorted(words.first, chosen, side="right") - 1, sizes)
    positions = words.starts[word] + inside
    labels = tokens[rows, positions]
    same_ngram = np.zeros(len(word), bool)
    if rule.by_span:
        same_ngram[1:] = (rows[1:] == rows[:-1]) & (ngrams[word[1:]] == ngrams[word[:-1]])
    replaced = tokens.copy()
    replaced[rows, positions] = replace_tokens(labels, same_ngram, rule, rng)
    return Masked(replaced, rows, positions, labels)
