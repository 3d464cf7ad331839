"""Counts and vectors of words against sums and matrices written out."""

import numpy as np
import pytest

from albert_tf.starting_weights import word_statistics
from albert_tf.starting_weights.word_statistics import WINDOW, count_words

V, IGNORED = 12, (0, 1)


@pytest.fixture(scope="module")
def rows() -> list[np.ndarray]:
    """Three batches of random ids."""
    random = np.random.default_rng(1)
    return [random.integers(0, V, size=[4, 9]) for _ in range(3)]


def counted_one_by_one(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    frequencies, neighbors = np.zeros(V), np.zeros([V, V])
    for row in np.concatenate(rows):
        for i, word in enumerate(row):
            frequencies[word] += word not in IGNORED
            for j, other in enumerate(row):
                if i != j and abs(i - j) <= WINDOW and not {word, other} & set(IGNORED):
                    neighbors[word, other] += 1 / abs(i - j)
    return frequencies, neighbors


@pytest.mark.parametrize("at_once", [1, 70, 1 << 20])
def test_counts(rows, at_once, monkeypatch):
    monkeypatch.setattr(word_statistics, "_COUNTED_AT_ONCE", at_once)
    statistics = count_words(rows, V, IGNORED)
    frequencies, neighbors = counted_one_by_one(rows)
    np.testing.assert_array_equal(statistics.frequencies, frequencies)
    np.testing.assert_allclose(statistics.neighbors.toarray(), neighbors, atol=1e-12)


def test_log_probabilities(rows):
    statistics = count_words(rows, V, IGNORED)
    counts = statistics.frequencies + 1
    found = statistics.log_probabilities()
    assert found.dtype == np.float32
    np.testing.assert_allclose(np.exp(found), counts / counts.sum(), rtol=1e-5)


def test_vectors_are_the_largest_singular_ones(rows):
    """Their products are those of a dense decomposition of mutual information written out."""
    statistics = count_words(rows, V, IGNORED)
    _, neighbors = counted_one_by_one(rows)
    of_word = neighbors.sum(axis=1)
    of_context = of_word**0.75 / (of_word**0.75).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = neighbors / (of_word[:, None] * of_context[None])
        information = np.where(neighbors > 0, np.maximum(np.log(ratio), 0), 0)
    left, singular, _ = np.linalg.svd(information)
    expected = left[:, :4] * np.sqrt(singular[:4])
    norms = np.linalg.norm(expected, axis=1, keepdims=True)
    expected = 2 * np.divide(expected, norms, where=norms > 1e-6, out=np.zeros_like(expected))
    found = statistics.vectors(4, seed=0)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-3)
    np.testing.assert_array_equal(found[list(IGNORED)], 0)
    np.testing.assert_allclose(np.square(found[2:]).mean(axis=1), 1, rtol=1e-5)
