"""Masks are whole words within segments, distributed as the reference's are meant to be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.pretraining import masking

VOCABULARY, MASK = 1000, 4
SPECIAL = (0, 1, 2, 3, 4)
STARTS = np.arange(VOCABULARY) % 3 != 0


def rule(**changes):
    fields = dict(
        rate=0.15, max_predictions=77, ngram=3, favor_shorter=True, by_span=False, mask_id=MASK
    )
    replacements = masking.replacement_ids(VOCABULARY, SPECIAL)
    return masking.MaskingRule(**{**fields, **changes}, replacement_ids=replacements)


def sequences(*pairs):
    """tokens, boundaries, is_special, lengths of [2 a.. 3 b.. 3], padded with 0."""
    rows = [np.array([2, *a, 3, *b, 3], np.int32) for a, b in pairs]
    lengths = np.array([len(row) for row in rows])
    tokens = np.zeros((len(rows), lengths.max()), np.int32)
    special = np.zeros(tokens.shape, bool)
    for i, (row, (a, _)) in enumerate(zip(rows, pairs)):
        tokens[i, : len(row)] = row
        special[i, [0, len(a) + 1, len(row) - 1]] = True
    after_special = np.pad(special[:, :-1], [[0, 0], [1, 0]])
    is_token = np.arange(tokens.shape[1]) < lengths[:, None]
    return tokens, (STARTS[tokens] | special | after_special) & is_token, special, lengths


def words_of(*pairs):
    _, boundaries, special, _ = sequences(*pairs)
    return masking.find_words(boundaries, special)


def choose(words, budget, ngram, favor_shorter, seed):
    """Positions chosen in each sequence."""
    rng, count = np.random.default_rng(seed), len(words.first) - 1
    ngrams = masking.choose_ngrams(
        words,
        np.full(count, budget),
        masking.ngram_thresholds(ngram, favor_shorter),
        lambda _: rng.random((2, count)),
    )
    return [
        [
            position
            for word in range(first, last)
            if ngrams[word]
            for position in range(words.starts[word], words.ends[word])
        ]
        for first, last in zip(words.first, words.first[1:])
    ]


SEGMENT = st.lists(st.integers(5, VOCABULARY - 1), min_size=1, max_size=60)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(SEGMENT, SEGMENT), min_size=1, max_size=4),
    st.integers(1, 3),
    st.integers(1, 20),
    st.booleans(),
    st.integers(0, 99),
)
def test_masks_are_whole_words_within_the_budget(pairs, ngram, most, by_span, seed):
    tokens, boundaries, special, lengths = sequences(*pairs)
    how = rule(ngram=ngram, max_predictions=most, by_span=by_span)
    masked = masking.mask_sequences(
        tokens, boundaries, special, lengths, how, np.random.default_rng(seed)
    )
    words = masking.find_words(boundaries, special)
    chosen = np.zeros(tokens.shape, bool)
    chosen[masked.rows, masked.positions] = True
    for row, length in enumerate(lengths):
        assert chosen[row].sum() <= min(most, max(1, round(0.15 * length)))
        for word in range(words.first[row], words.first[row + 1]):
            inside = chosen[row, words.starts[word] : words.ends[word]]
            assert inside.all() or not inside.any(), "never part of a word"
    assert chosen.sum() == len(masked.rows) and not (chosen & special).any()
    assert np.array_equal(np.argwhere(chosen), np.stack([masked.rows, masked.positions], axis=1))
    assert np.array_equal(masked.labels, tokens[chosen])
    assert np.array_equal(masked.tokens[~chosen], tokens[~chosen])
    assert np.all((masked.tokens[chosen] == MASK) | (masked.tokens[chosen] > 4))


def test_words_begin_anew_after_special_pieces():
    words = words_of(([6, 7, 9, 12], [9, 12, 7]))  # 6, 9, 12 do not start words
    assert words.starts.tolist() == [1, 2, 6, 8]
    assert words.ends.tolist() == [2, 5, 8, 9]
    assert words.segment_ends.tolist() == [2, 2, 4, 4]


def test_ngrams_never_cross_separators():
    """Two segments of one word each: a bigram would have to cross."""
    words = words_of(([7, 9], [8, 9]))
    seen = {tuple(choose(words, 2, 3, False, seed)[0]) for seed in range(100)}
    assert seen == {(1, 2), (4, 5)}


@pytest.mark.parametrize("favor_shorter, expected", [(True, [6, 3, 2]), (False, [2, 3, 6])])
@pytest.mark.parametrize("available", [3, 2, 1])
def test_ngram_sizes_are_proportional_to_one_over_n(favor_shorter, expected, available):
    """The first word visited starts an n-gram of any size that its segment has room for."""
    count = 20_000
    words = words_of(*[([7] * available, [7])] * count)

    def draw(number):
        draws = np.random.default_rng(available + number).random((2, count))
        return draws * [[number > 0], [1]]  # The first word in round 0.

    thresholds = masking.ngram_thresholds(3, favor_shorter)
    ngrams = masking.choose_ngrams(words, np.full(count, 1 + available), thresholds, draw)
    sizes = np.add.reduceat(ngrams == 1, words.first[:-1])
    wanted = np.array(expected[:available]) / sum(expected[:available]) * count
    counts = np.bincount(sizes, minlength=available + 1)[1:]
    chi_square = ((counts - wanted) ** 2 / wanted).sum()
    assert len(counts) == available and chi_square < 18.4  # 0.0001 with 2 degrees of freedom


def test_every_word_is_equally_likely_without_ngrams():
    rounds = 3000
    chosen = choose(words_of(*[([7] * 30, [7] * 30)] * rounds), 9, 1, True, seed=0)
    counts = np.bincount(np.concatenate(chosen), minlength=63)
    words_only = counts[np.r_[1:31, 32:62]]
    assert words_only.sum() == 9 * rounds
    p = 9 / 60
    assert np.all(np.abs(words_only / rounds - p) < 5 * np.sqrt(p * (1 - p) / rounds))


def reference_choice(words, sizes, order, budget):
    """The rule in words, for one sequence: what each n-gram may take, one after the other."""
    taken, left = set(), budget
    for word in order:
        end = word + sizes[word]
        while end > word and words.ends[end - 1] - words.starts[word] > left:
            end -= 1
        if end == word or taken & set(range(word, end)):
            continue
        taken |= set(range(word, end))
        left -= words.ends[end - 1] - words.starts[word]
    return taken


@settings(max_examples=200, deadline=None)
@given(SEGMENT, SEGMENT, st.integers(1, 30), st.integers(0, 999))
def test_side_by_side_equals_one_by_one(tokens_a, tokens_b, budget, seed):
    words = words_of((tokens_a, tokens_b))
    count, rng = len(words.starts), np.random.default_rng(seed)
    thresholds = masking.ngram_thresholds(3, True)
    order, sizes = rng.permutation(count), {}
    draws = []
    for word in order:
        available = min(words.segment_ends[word] - word, 3)
        size = rng.integers(1, available + 1)
        sizes[word] = size
        upper, lower = thresholds[size - 1], thresholds[size - 2] if size > 1 else 0.0
        draws.append([[(word + 0.5) / count], [(upper + lower) / 2 / thresholds[available - 1]]])
    found = masking.choose_ngrams(
        words, np.array([budget]), thresholds, lambda number: np.array(draws[number])
    )
    assert set(np.flatnonzero(found)) == reference_choice(words, sizes, order, budget)


def test_replacements_are_80_10_10_and_never_special():
    n = 50_000
    labels = np.full(n, 700, np.int32)
    replaced = masking.replace_tokens(labels, np.zeros(n, bool), rule(), np.random.default_rng(0))
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
    assert masking.prediction_budgets(np.array([tokens]), rate, most).tolist() == [budget]


def test_word_longer_than_the_budget_is_left_alone():
    assert choose(words_of(([7] + [9] * 30, [9] * 10)), 3, 3, True, 0) == [[]]


def test_by_span_all_pieces_of_an_ngram_share_their_fate():
    pairs = [([7, 9, 9] * 20, [7, 9, 9] * 20)] * 500
    tokens, boundaries, special, lengths = sequences(*pairs)
    for by_span in (True, False):
        how = rule(ngram=1, max_predictions=18, by_span=by_span)
        rng = np.random.default_rng(0)
        masked = masking.mask_sequences(tokens, boundaries, special, lengths, how, rng)
        fate = (masked.tokens[masked.rows, masked.positions] == MASK).reshape(-1, 3)
        assert len(fate) == 500 * 6
        mixed = np.mean(fate.any(axis=1) != fate.all(axis=1))
        expected = 0.0 if by_span else 1 - 0.8**3 - 0.2**3
        assert abs(mixed - expected) <= 5 * np.sqrt(expected * (1 - expected) / len(fate))
        assert abs(fate.mean() - 0.8) < 5 * np.sqrt(0.16 / len(fate))
