"""Masks are whole words within segments, distributed as the reference's are meant to be."""

import collections
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline import masking

VOCABULARY, MASK = 1000, 4
SPECIAL = (0, 1, 2, 3, 4)
STARTS = np.arange(VOCABULARY) % 3 != 0


def rule(**changes):
    fields = dict(rate=0.15, max_predictions=77, ngram=3, favor_shorter=True, mask_id=MASK)
    replacements = masking.replacement_ids(VOCABULARY, SPECIAL)
    return masking.MaskingRule(**{**fields, **changes}, replacement_ids=replacements)


def sequence(tokens_a, tokens_b):
    tokens = np.array([2, *tokens_a, 3, *tokens_b, 3], np.int32)
    special = np.zeros(len(tokens), bool)
    special[[0, len(tokens_a) + 1, -1]] = True
    return (
        tokens,
        special,
        masking.find_words(masking.word_starts(tokens, STARTS, special), special),
    )


SEGMENT = st.lists(st.integers(5, VOCABULARY - 1), min_size=1, max_size=60)


@settings(max_examples=200, deadline=None)
@given(SEGMENT, SEGMENT, st.integers(1, 3), st.integers(1, 20), st.integers(0, 99))
def test_masks_are_whole_words_within_the_budget(tokens_a, tokens_b, ngram, most, seed):
    tokens, special, words = sequence(tokens_a, tokens_b)
    masked = masking.mask_sequence(
        tokens, words, rule(ngram=ngram, max_predictions=most), np.random.default_rng(seed)
    )
    budget = min(most, max(1, round(0.15 * len(tokens))))
    assert len(masked.positions) <= budget
    assert np.all(np.diff(masked.positions) > 0) and not special[masked.positions].any()
    assert np.array_equal(masked.labels, tokens[masked.positions])
    untouched = np.setdiff1d(np.arange(len(tokens)), masked.positions)
    assert np.array_equal(masked.tokens[untouched], tokens[untouched])
    assert np.all((masked.tokens[masked.positions] == MASK) | (masked.tokens[masked.positions] > 4))
    chosen = set(masked.positions.tolist())
    for start, end in zip(words.starts, words.ends):
        assert len(chosen.intersection(range(start, end))) in (0, end - start), (
            "never part of a word"
        )


def test_words_begin_anew_after_special_pieces():
    tokens, special, words = sequence([6, 7, 9, 12], [9, 12, 7])  # 6, 9, 12 do not start words
    assert words.starts.tolist() == [1, 2, 6, 8]
    assert words.ends.tolist() == [2, 5, 8, 9]
    assert len(set(words.segments[:2])) == 1 and words.segments[1] != words.segments[2]
    assert masking.word_starts(tokens, STARTS, special).tolist() == [
        True, True, True, False, False, True, True, False, True, True,
    ]  # fmt: skip


def test_ngrams_never_cross_separators():
    """Two segments of one word each: a bigram would have to cross."""
    _, _, words = sequence([7, 9], [8, 9])
    seen = set()
    for seed in range(100):
        rng = np.random.default_rng(seed)
        positions = masking.choose_ngrams(words, 2, 3, False, rng)
        seen.add(tuple(positions.tolist()))
    assert seen == {(1, 2), (4, 5)}


@pytest.mark.parametrize("favor_shorter, expected", [(True, [6, 3, 2]), (False, [2, 3, 6])])
def test_ngram_sizes_are_proportional_to_one_over_n(favor_shorter, expected):
    draws = 20_000
    for available in (3, 2, 1):
        sizes = masking.ngram_sizes(
            np.full(draws, available), 3, favor_shorter, np.random.default_rng(available)
        )
        wanted = np.array(expected[:available]) / sum(expected[:available]) * draws
        counts = np.bincount(sizes, minlength=available + 1)[1:]
        chi_square = ((counts - wanted) ** 2 / wanted).sum()
        assert len(counts) == available and chi_square < 18.4  # 0.0001 with 2 degrees of freedom


def test_masked_runs_have_the_drawn_lengths():
    """In a long sequence with few masks, n-grams rarely touch: runs have the lengths drawn."""
    runs = collections.Counter()
    _, _, words = sequence([7] * 20_000, [7])
    for seed in range(10):
        positions = masking.choose_ngrams(words, 400, 3, True, np.random.default_rng(seed))
        assert len(positions) == 400
        groups = itertools.groupby(enumerate(positions), lambda pair: pair[1] - pair[0])
        runs.update(len(list(group)) for _, group in groups)
    shares = np.array([runs[n] for n in (1, 2, 3)]) / sum(runs.values())
    deviation = 4 * np.sqrt(np.array([6, 3, 2]) / 11 / sum(runs.values())) + 0.03
    assert np.all(np.abs(shares - np.array([6, 3, 2]) / 11) < deviation)


def test_every_word_is_equally_likely_without_ngrams():
    tokens, _, words = sequence([7] * 30, [7] * 30)
    counts = np.zeros(len(tokens))
    rounds = 3000
    for seed in range(rounds):
        counts[masking.choose_ngrams(words, 9, 1, True, np.random.default_rng(seed))] += 1
    words_only = counts[np.r_[1:31, 32:62]]
    assert words_only.sum() == 9 * rounds
    p = 9 / 60
    assert np.all(np.abs(words_only / rounds - p) < 5 * np.sqrt(p * (1 - p) / rounds))


def test_replacements_are_80_10_10_and_never_special():
    n = 50_000
    tokens = np.full(n, 700, np.int32)
    replaced = masking.replace_tokens(tokens, np.arange(n), rule(), np.random.default_rng(0))
    random = replaced[(replaced != MASK) & (replaced != 700)]
    for share, wanted in [
        (np.mean(replaced == MASK), 0.8),
        (np.mean(replaced == 700), 0.1 + 0.1 / (VOCABULARY - 5)),
        (len(random) / n, 0.1 - 0.1 / (VOCABULARY - 5)),
    ]:
        assert abs(share - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / n)
    assert random.min() == 5 and random.max() == VOCABULARY - 1
    assert len(np.unique(random)) > 0.97 * (VOCABULARY - 5)


@pytest.mark.parametrize(
    "tokens, rate, most, budget",
    [(128, 0.15, 20, 19), (128, 0.15, 10, 10), (4, 0.15, 20, 1), (30, 0.15, 9, 4)],
)
def test_budget(tokens, rate, most, budget):
    assert masking.prediction_budget(tokens, rate, most) == budget


def test_word_longer_than_the_budget_is_left_alone():
    _, _, words = sequence([7] + [9] * 30, [9] * 10)
    assert len(masking.choose_ngrams(words, 3, 3, True, np.random.default_rng(0))) == 0
