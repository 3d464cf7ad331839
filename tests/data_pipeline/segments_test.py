"""Pairs come from one document, fit, lose no sentence and are swapped half of the time."""

import collections

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline import segments

VOCABULARY = 10_000
ALL_WORDS = np.ones(VOCABULARY, bool)
EVEN_STARTS = np.arange(VOCABULARY) % 2 == 0


def numbered(lengths):
    """A document whose tokens are 0, 1, 2, ... across its sentences."""
    ends = np.cumsum(lengths)
    return [np.arange(end - length, end, dtype=np.int32) for end, length in zip(ends, lengths)]


def pairs_of(sentences, objective="sop", limit=20, short=0.0, starts=ALL_WORDS, seed=0, other=None):
    rng = np.random.default_rng(seed)
    return segments.make_pairs(
        sentences, objective, limit, short, starts, rng, other and (lambda: other)
    )


DOCUMENTS = st.lists(st.integers(1, 60), min_size=1, max_size=12).map(numbered)


@settings(max_examples=200, deadline=None)
@given(
    DOCUMENTS,
    st.integers(2, 40),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.integers(0, 99),
    st.booleans(),
)
def test_sentence_order_pairs_are_neighbours_of_one_document(
    document, limit, short, seed, all_words
):
    starts = ALL_WORDS if all_words else EVEN_STARTS
    pairs, skipped = pairs_of(document, "sop", limit, short, starts, seed)
    previous = -1
    for a, b, label in pairs:
        assert len(a) and len(b) and len(a) + len(b) <= limit
        assert np.all(np.diff(a) == 1) and np.all(np.diff(b) == 1), "segments are consecutive text"
        first, second = (b, a) if label == segments.SWAPPED else (a, b)
        assert previous < first[0] and first[-1] < second[0], "in order, each token used once"
        previous = second[-1]
    assert set(skipped) <= {segments.ONE_WORD}
    assert len(pairs) + sum(skipped.values()) > 0


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS, st.integers(4, 40), st.integers(0, 99))
def test_nothing_is_lost_without_overshoot(document, limit, seed):
    """With sentences no longer than the limit allows, chunks cover the document."""
    single = [np.array([token]) for sentence in document for token in sentence]
    pairs, skipped = pairs_of(single, "sop", limit, 0.0, ALL_WORDS, seed)
    parts = [part for pair in pairs for part in sorted(pair[:2], key=lambda part: part[0])]
    used = np.concatenate([np.zeros(0, int), *parts])
    total = sum(map(len, document))
    assert len(used) == total - sum(skipped.values())
    assert np.array_equal(used, np.arange(len(used)))


def test_labels_are_balanced():
    labels = [
        pair.label
        for seed in range(400)
        for pair in pairs_of(numbered([7, 30, 3, 8, 5, 9]), short=0.1, seed=seed)[0]
    ]
    assert len(labels) > 1000
    assert abs(np.mean(labels) - 0.5) < 4 * 0.5 / np.sqrt(len(labels))


def test_single_sentence_is_divided_at_a_word():
    cuts = collections.Counter()
    for seed in range(200):
        [(a, b, label)], _ = pairs_of(numbered([12]), starts=EVEN_STARTS, seed=seed)
        second = a if label else b
        assert second[0] % 2 == 0 and len(a) + len(b) == 12
        cuts[int(second[0])] += 1
    assert set(cuts) == {2, 4, 6, 8, 10}


def test_single_word_is_skipped_and_counted():
    no_starts = np.zeros(VOCABULARY, bool)
    assert pairs_of(numbered([5]), starts=no_starts) == ([], {segments.ONE_WORD: 1})
    pairs, skipped = pairs_of(numbered([5, 5]), starts=no_starts, limit=4, seed=1)
    assert pairs and not skipped, "words of two sentences make a pair"


def test_long_sentences_are_cut_at_words_and_kept():
    parts = segments.split_long_sentence(np.arange(25), 10, EVEN_STARTS)
    assert [len(part) for part in parts] == [10, 10, 5]
    parts = segments.split_long_sentence(np.arange(1, 26), 10, EVEN_STARTS)
    assert [int(part[0]) for part in parts] == [1, 10, 20]
    parts = segments.split_long_sentence(np.arange(25), 10, np.zeros(99, bool))
    assert np.array_equal(np.concatenate(parts), np.arange(25)) and len(parts) == 3


def test_short_targets_are_drawn_once_per_document():
    def shortened(short):
        document = numbered([5] * 100)
        drawn = [pairs_of(document, limit=100, short=short, seed=seed)[0] for seed in range(400)]
        return np.mean([len(pairs) > 6 for pairs in drawn])

    # A target of at most 75 of 100 tokens (74 of 99 draws) makes more than 6 pairs of 500 tokens.
    assert shortened(0.0) == 0
    for short in (0.1, 1.0):
        expected = short * 74 / 99
        assert (
            abs(shortened(short) - expected) < 4 * np.sqrt(expected * (1 - expected) / 400) + 0.03
        )


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(2, 60))
def test_truncation_takes_from_the_longer(length_a, length_b, limit):
    expected_a, expected_b = length_a, length_b
    while expected_a + expected_b > limit:
        if expected_a > expected_b:
            expected_a -= 1
        else:
            expected_b -= 1
    assert segments.truncated_lengths(length_a, length_b, limit) == (expected_a, expected_b)


def test_truncation_takes_at_front_and_back_alike():
    fronts = [
        int(segments.truncate(np.arange(50), np.arange(0), 30, np.random.default_rng(seed))[0][0])
        for seed in range(500)
    ]
    assert abs(np.mean(fronts) - 10) < 4 * np.sqrt(5 / 500)


def test_next_sentence_pairs():
    other = [np.full(6, 9_000 + i) for i in range(5)]
    labels, covered = [], []
    for seed in range(300):
        pairs, _ = pairs_of(numbered([6] * 12), "nsp", 20, seed=seed, other=other)
        for a, b, label in pairs:
            assert a[0] < 9_000
            assert bool(b[0] >= 9_000) == (label == 1)
            labels.append(label)
        covered.append(len({int(t) for a, b, _ in pairs for t in (*a, *b) if t < 9_000}))
    assert abs(np.mean(labels) - 0.5) < 4 * 0.5 / np.sqrt(len(labels))
    assert np.mean(covered) > 60, "sentences not used beside a random B are used again"


def test_no_pairs_objective():
    pairs, _ = pairs_of(numbered([6] * 12), "none", 20)
    assert all(not len(pair.tokens_b) and pair.label == 0 for pair in pairs)
    assert all(len(pair.tokens_a) == 20 for pair in pairs)


@pytest.mark.parametrize("objective", ["sop", "none"])
def test_choices_are_a_function_of_the_generator(objective):
    first, _ = pairs_of(numbered([9, 4, 30, 2]), objective, seed=5)
    again, _ = pairs_of(numbered([9, 4, 30, 2]), objective, seed=5)
    assert all(np.array_equal(x, y) for a, b in zip(first, again) for x, y in zip(a, b))
