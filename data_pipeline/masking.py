"""Masked language model targets: n-grams of whole words, replaced 80/10/10.

Follows google-research/albert's create_masked_lm_predictions with its bugs repaired: n-grams never
cross [SEP], every choice comes from one generator, special pieces are never drawn as replacement.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

MASK_PROBABILITY, KEEP_PROBABILITY = 0.8, 0.1


@dataclasses.dataclass(frozen=True)
class MaskingRule:
    """What is masked and by what.

    Attributes:
      rate: share of the tokens (special ones included) to predict.
      max_predictions: at most so many in a sequence.
      ngram: longest n-gram, in words.
      favor_shorter: P(n) is proportional to 1/n; otherwise those probabilities in reverse order.
      mask_id: id of [MASK].
      replacement_ids: int32 [R], the ids from which random replacements are drawn.
    """

    rate: float
    max_predictions: int
    ngram: int
    favor_shorter: bool
    mask_id: int
    replacement_ids: np.ndarray


class Words(NamedTuple):
    """The words of a sequence: word w is tokens[starts[w]:ends[w]] in segment segments[w]."""

    starts: np.ndarray
    ends: np.ndarray
    segments: np.ndarray


class Masked(NamedTuple):
    """A masked sequence: tokens int32 [S'], positions int32 [P'] ascending, labels int32 [P']."""

    tokens: np.ndarray
    positions: np.ndarray
    labels: np.ndarray


def replacement_ids(vocab_size: int, special_ids: tuple[int, ...]) -> np.ndarray:
    """Ids of all pieces that stand for text, int32."""
    return np.setdiff1d(np.arange(vocab_size, dtype=np.int32), np.array(special_ids, np.int32))


def prediction_budget(num_tokens: int, rate: float, max_predictions: int) -> int:
    """How many tokens to predict; rounds half to even, as the reference does."""
    return min(max_predictions, max(1, round(num_tokens * rate)))


def word_starts(
    tokens: np.ndarray, is_word_start: np.ndarray, is_special: np.ndarray
) -> np.ndarray:
    """bool [S']: True at special pieces and where a word starts; special pieces end words.

    Args:
      tokens: int [S'] with special pieces.
      is_word_start: bool [V].
      is_special: bool [S'], True at [CLS] and [SEP].
    """
    after_special = np.concatenate([[True], is_special[:-1]])
    return is_special | after_special | is_word_start[tokens]


def find_words(starts_here: np.ndarray, is_special: np.ndarray) -> Words:
    """Words of a sequence from `word_starts` (bool [S']); special pieces are no words."""
    boundaries = np.flatnonzero(np.concatenate([starts_here, [True]]))
    is_word = ~is_special[boundaries[:-1]]
    segments = np.cumsum(is_special)
    starts = boundaries[:-1][is_word]
    return Words(starts, boundaries[1:][is_word], segments[starts])


def ngram_probabilities(ngram: int, favor_shorter: bool) -> np.ndarray:
    """P(n) for n = 1..ngram."""
    weights = 1.0 / np.arange(1, ngram + 1)
    weights = weights if favor_shorter else weights[::-1]
    return weights / weights.sum()


def ngram_sizes(
    available: np.ndarray, ngram: int, favor_shorter: bool, rng: np.random.Generator
) -> np.ndarray:
    """Draws n for each word; P(n) is renormalised over the 1..available words that are left."""
    cumulative = np.cumsum(ngram_probabilities(ngram, favor_shorter))
    draws = rng.random(len(available)) * cumulative[available - 1]
    return np.minimum(np.searchsorted(cumulative, draws, side="right") + 1, available)


def choose_ngrams(
    words: Words, budget: int, ngram: int, favor_shorter: bool, rng: np.random.Generator
) -> np.ndarray:
    """Positions to predict, int32 ascending, at most `budget`.

    Words are visited in random order; each starts an n-gram, shortened until it fits what is left
    of the budget, and passed over when a word of it is taken already.
    """
    num_words = len(words.starts)
    segment_ends = np.searchsorted(words.segments, words.segments, side="right")
    available = np.minimum(segment_ends - np.arange(num_words), ngram)
    sizes = ngram_sizes(available, ngram, favor_shorter, rng).tolist()
    starts, ends = words.starts.tolist(), words.ends.tolist()
    taken = bytearray(num_words)
    positions: list[int] = []
    for first in rng.permutation(num_words).tolist():
        left = budget - len(positions)
        if left == 0:
            break
        end = first + sizes[first]
        while end > first and ends[end - 1] - starts[first] > left:
            end -= 1
        if end == first or 1 in taken[first:end]:
            continue
        taken[first:end] = b"\1" * (end - first)
        positions.extend(range(starts[first], ends[end - 1]))
    return np.array(sorted(positions), np.int32)


def replace_tokens(
    tokens: np.ndarray, positions: np.ndarray, rule: MaskingRule, rng: np.random.Generator
) -> np.ndarray:
    """A copy of tokens with 80 % of the positions [MASK], 10 % as they are, 10 % random."""
    draws = rng.random(len(positions))
    random_ids = rng.choice(rule.replacement_ids, len(positions))
    kept_or_random = np.where(
        draws < MASK_PROBABILITY + KEEP_PROBABILITY, tokens[positions], random_ids
    )
    replaced = tokens.copy()
    replaced[positions] = np.where(draws < MASK_PROBABILITY, rule.mask_id, kept_or_random)
    return replaced


def mask_sequence(
    tokens: np.ndarray, words: Words, rule: MaskingRule, rng: np.random.Generator
) -> Masked:
    """Chooses and replaces the tokens to predict in one sequence (int32 [S'])."""
    budget = prediction_budget(len(tokens), rule.rate, rule.max_predictions)
    positions = choose_ngrams(words, budget, rule.ngram, rule.favor_shorter, rng)
    return Masked(replace_tokens(tokens, positions, rule, rng), positions, tokens[positions])
