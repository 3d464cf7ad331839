"""Pairs come from one document, fit, lose no sentence and are swapped half of the time."""

import collections
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.pretraining import segments, tokenized

VOCABULARY = 10_000
ALL_WORDS = np.ones(VOCABULARY, bool)
EVEN_STARTS = np.arange(VOCABULARY) % 2 == 0


class Pair(NamedTuple):
    """One pair, as arrays of ids."""

    tokens_a: np.ndarray
    tokens_b: np.ndarray
    label: int


def numbered(lengths):
    """A document whose tokens are 0, 1, 2, ... across its sentences."""
    ends = np.cumsum(lengths)
    return [np.arange(end - length, end, dtype=np.int32) for end, length in zip(ends, lengths)]


def as_tokenized(documents, starts):
    """Documents, given as lists of ids of sentences."""
    sentences = [sentence for document in documents for sentence in document]
    ids = np.concatenate([np.zeros(0, np.int32), *sentences]).astype(np.int32)
    sizes = [np.cumsum([0, *map(len, parts)]) for parts in (sentences, documents)]
    return tokenized.TokenizedDocuments(ids, *sizes, starts[ids])


def pairs_of_many(documents, objective="sop", limit=20, short=0.0, starts=ALL_WORDS, seed=0):
    text = as_tokenized(documents, starts)
    maker = segments.PairMaker(text, objective, limit, short)
    made, skipped = maker.make(np.random.default_rng(seed))
    pairs = [
        Pair(text.ids[a : a + length_a], text.ids[b : b + length_b], int(label))
        for a, length_a, b, length_b, label in zip(
            made.start_a, made.length_a, made.start_b, made.length_b, made.label
        )
    ]
    return pairs, skipped


def pairs_of(sentences, *args, **options):
    return pairs_of_many([sentences], *args, **options)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(1, 60), min_size=1, max_size=12).map(numbered), min_size=1, max_size=4
    ),
    st.integers(4, 40),
    st.integers(0, 99),
)
def test_chunks_that_are_divided_later(documents, limit, seed):
    """All of the text is in chunks; each gives a pair of neighbors in it, which other draws cut
    elsewhere.
    """
    rng = np.random.default_rng(seed)
    text = as_tokenized(documents, ALL_WORDS)
    maker = segments.PairMaker(text, "sop", limit, 0.1, swap=False, divide=False)
    chunks, skipped = maker.make(rng)
    single = sum(skipped.values())
    assert chunks.length_a.sum() == len(text.ids) - single and not chunks.length_b.any()
    assert (chunks.length_a <= 2 * limit).all()
    if not len(chunks):
        return
    ids = np.concatenate([text.ids[a : a + n] for a, n in zip(chunks.start_a, chunks.length_a)])
    borders = np.concatenate([[0], np.cumsum(chunks.length_a)])
    is_border = np.isin(np.arange(len(text.ids)), maker.tokenized.sentences)
    inside = np.concatenate([is_border[a : a + n] for a, n in zip(chunks.start_a, chunks.length_a)])
    sentences = np.append(np.flatnonzero(inside), len(ids))
    again = tokenized.TokenizedDocuments(
        ids, sentences, np.searchsorted(sentences, borders), np.ones(len(ids), bool)
    )
    pairs = segments.PairMaker(again, "sop", limit, 0).divide_documents(rng)
    first = np.where(pairs.label == 1, pairs.start_b, pairs.start_a)
    last = np.where(
        pairs.label == 1, pairs.start_a + pairs.length_a, pairs.start_b + pairs.length_b
    )
    assert (first >= borders[:-1]).all() and (last <= borders[1:]).all()
    assert (pairs.length_a > 0).all() and (pairs.length_b > 0).all()
    total = pairs.length_a + pairs.length_b
    np.testing.assert_array_equal(total, np.minimum(chunks.length_a, limit))


DOCUMENTS = st.lists(st.integers(1, 60), min_size=1, max_size=12).map(numbered)


@settings(max_examples=200, deadline=None)
@given(
    DOCUMENTS,
    st.integers(2, 40),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.integers(0, 99),
    st.booleans(),
)
def test_sentence_order_pairs_are_neighbors_of_one_document(
    document, limit, short, seed, all_words
):
    starts = ALL_WORDS if all_words else EVEN_STARTS
    pairs, skipped = pairs_of(document, "sop", limit, short, starts, seed)
    previous = -1
    for a, b, label in pairs:
        assert len(a) and len(b) and len(a) + len(b) <= limit
        assert np.all(np.diff(a) == 1) and np.all(np.diff(b) == 1), "segments are consecutive text"
        first, second = (b, a) if label else (a, b)
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
    assert len(used) == total - skipped[segments.ONE_WORD]
    # A single token is left over at the end, or at the beginning of one divided from its end.
    start = used[0] if len(used) else 0
    assert start <= skipped[segments.ONE_WORD]
    assert np.array_equal(used, np.arange(start, start + len(used)))


def test_lengths_do_not_tell_the_order():
    """The sentence that closes a chunk is longer than most, and as often in A as in B."""
    rng = np.random.default_rng(0)
    documents = [numbered(rng.geometric(0.1, 40)) for _ in range(400)]
    text = as_tokenized(documents, np.ones(10_000, bool))
    pairs, _ = segments.PairMaker(text, "sop", 60, 0.0, swap=False).make(rng)
    differ = pairs.length_a != pairs.length_b
    longer_b = (pairs.length_b > pairs.length_a)[differ]
    assert len(longer_b) > 1500
    assert abs(longer_b.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(longer_b))


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


def test_short_targets_are_drawn_once_per_document():
    def shortened(short):
        document = numbered([5] * 100)
        drawn = [pairs_of(document, limit=100, short=short, seed=seed)[0] for seed in range(400)]
        return np.mean([len(pairs) > 6 for pairs in drawn])

    # A target of at most 75 of 100 tokens (74 of 99 draws) makes more than 6 pairs of 500 tokens.
    assert shortened(0.0) == 0
    for short in (0.1, 1.0):
        expected = short * 74 / 99
        spread = 4 * np.sqrt(expected * (1 - expected) / 400) + 0.03
        assert abs(shortened(short) - expected) < spread


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(2, 60), st.booleans())
def test_truncation_takes_from_the_longer(length_a, length_b, limit, from_a):
    expected_a, expected_b = length_a, length_b
    while expected_a + expected_b > limit:
        if expected_a > expected_b or (expected_a == expected_b and from_a):
            expected_a -= 1
        else:
            expected_b -= 1
    found = segments.truncated_lengths(
        np.array([length_a]), np.array([length_b]), limit, np.array([from_a])
    )
    assert np.array_equal(found, [[expected_a], [expected_b]])


@pytest.mark.parametrize("swap", [True, False])
def test_truncation_does_not_tell_the_order(swap):
    """Of two segments cut to 25 tokens together, either has 13, whatever their order is."""
    document = as_tokenized([numbered([20] * 800)], np.ones(16_000, bool))
    pairs, _ = segments.PairMaker(document, "sop", 25, 0.0, swap).make(np.random.default_rng(0))
    assert len(pairs) == 400 and set(pairs.label) == ({0, 1} if swap else {0})
    for label in set(pairs.label):
        a, b = pairs.length_a[pairs.label == label], pairs.length_b[pairs.label == label]
        assert set(a) == set(b) == {12, 13}
        assert abs(np.mean(a > b) - 0.5) < 4 * 0.5 / np.sqrt(len(a))


def test_truncation_takes_at_front_and_back_alike():
    """Of the 40 tokens of the first sentence, 15 must go."""
    fronts = []
    for seed in range(500):
        [(a, b, label)], _ = pairs_of(numbered([40, 30]), limit=50, seed=seed, short=0.0)
        first, second = (b, a) if label else (a, b)
        assert len(first) == len(second) == 25
        fronts.append(int(first[0]))
    assert abs(np.mean(fronts) - 7.5) < 4 * np.sqrt(15 / 4 / 500)


def test_next_sentence_pairs():
    other = [np.full(6, 9_000 + i) for i in range(5)]
    labels, covered = [], []
    for seed in range(300):
        pairs, _ = pairs_of_many([numbered([6] * 12), other], "nsp", seed=seed)
        pairs = [pair for pair in pairs if pair.tokens_a[0] < 9_000]
        for _, b, label in pairs:
            assert bool(b[0] >= 9_000) == (label == 1)
            labels.append(label)
        covered.append(len({int(t) for a, b, _ in pairs for t in (*a, *b) if t < 9_000}))
    assert abs(np.mean(labels) - 0.5) < 4 * 0.5 / np.sqrt(len(labels))
    assert np.mean(covered) > 60, "sentences not used beside a random B are used again"


def test_a_random_next_sentence_is_of_any_other_document():
    documents = [[np.full(6, 9_000 + i)] * 12 for i in range(4)]
    found = set()
    for seed in range(100):
        pairs, _ = pairs_of_many(documents, "nsp", seed=seed)
        found |= {(int(a[0]), int(b[0])) for a, b, label in pairs if label}
    names = range(9_000, 9_004)
    assert found == {(a, b) for a in names for b in names if a != b}


def test_next_sentences_need_another_document():
    pairs, skipped = pairs_of_many([numbered([6] * 12), []], "nsp")
    assert not pairs and skipped == {segments.ALONE: 1}


def test_documents_without_text_do_no_harm():
    document = numbered([6] * 12)
    for objective in segments.SENTENCE_OBJECTIVES[::2]:
        alone, _ = pairs_of_many([document], objective)
        pairs, skipped = pairs_of_many([[], document, [], []], objective)
        assert len(pairs) == len(alone) and not skipped


def test_documents_without_a_pair_are_counted_once():
    text = as_tokenized([numbered([6] * 9), [], [np.array([7])]], ALL_WORDS)
    maker = segments.PairMaker(text, "sop", 20, 0.1)
    for seed in range(3):
        maker.make(np.random.default_rng(seed))
        assert maker.documents_without_pair == 2


def test_no_pairs_objective():
    pairs, _ = pairs_of(numbered([6] * 12), "none", 20)
    assert all(not len(pair.tokens_b) and pair.label == 0 for pair in pairs)
    assert all(len(pair.tokens_a) == 20 for pair in pairs)
