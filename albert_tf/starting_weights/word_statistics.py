"""Counts of words and of neighboring pairs, and word vectors made from them.

The vectors are the classic count-based ones (Levy and Goldberg 2014; Levy, Goldberg and Dagan
2015): the largest singular vectors of positive pointwise mutual information, weighted by the square
root of the singular values. Ten million tokens take one core a minute.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable

import numpy as np
import scipy.sparse
from sklearn.utils.extmath import randomized_svd

WINDOW = 5  # Words further apart are no neighbors; one at distance d counts 1 / d.
CONTEXT_POWER = 0.75  # Exponent of the contexts' counts, which lowers the weight of rare contexts.
_COUNTED_AT_ONCE = 1 << 20  # Tokens, which bounds memory.


@dataclasses.dataclass(frozen=True)
class WordStatistics:
    """Counts of the V words of a vocabulary.

    Attributes:
      frequencies: float64 [V], how often each occurs.
      neighbors: float [V, V], sparse and symmetric: how often two are neighbors, near ones counting
        more.
    """

    frequencies: np.ndarray
    neighbors: scipy.sparse.csr_matrix

    def log_probabilities(self) -> np.ndarray:
        """float32 [V], the logarithms of the words' shares, with 1 added to each count."""
        counts = self.frequencies + 1
        return np.log(counts / counts.sum()).astype(np.float32)

    def vectors(self, size: int, seed: int) -> np.ndarray:
        """Vectors of the words, near each other if words have the same neighbors.

        float32 [V, D] of Euclidean norm sqrt(D), so that entries have variance 1; zeros for words
        that never occur.
        """
        left, singular, _ = randomized_svd(self._mutual_information(), size, random_state=seed)
        vectors = left * np.sqrt(singular)  # [V, D]
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 1e-6)
        return (unit * np.sqrt(size)).astype(np.float32)

    def _mutual_information(self) -> scipy.sparse.csr_matrix:
        """[V, V]: log p(word, context) / (p(word) p(context)) where it is positive."""
        pairs = self.neighbors.tocoo()
        of_word = np.asarray(self.neighbors.sum(axis=1)).ravel()  # [V]
        of_context = of_word**CONTEXT_POWER
        expected = of_word[pairs.row] * of_context[pairs.col] / of_context.sum()
        values = np.maximum(np.log(pairs.data / expected), 0)
        return scipy.sparse.csr_matrix((values, (pairs.row, pairs.col)), shape=pairs.shape)


def count_words(
    rows: Iterable[np.ndarray], vocab_size: int, ignored: Collection[int]
) -> WordStatistics:
    """Counts words and their neighbors in arrays int [B, S] of word ids.

    Words are neighbors within a row only; `ignored` are ids that are not words, such as padding.
    """
    is_word = np.ones(vocab_size, bool)
    is_word[list(ignored)] = False
    frequencies = np.zeros(vocab_size)
    neighbors = scipy.sparse.csr_matrix((vocab_size, vocab_size))
    for ids in _larger(rows):
        words = is_word[ids]  # [B, S]
        frequencies += np.bincount(ids[words], minlength=vocab_size)
        for distance in range(1, WINDOW + 1):
            first, second = ids[:, :-distance], ids[:, distance:]
            both = words[:, :-distance] & words[:, distance:]
            pair = (first[both], second[both])
            weight = np.full(len(pair[0]), 1 / distance)
            neighbors += scipy.sparse.csr_matrix((weight, pair), shape=neighbors.shape)
    return WordStatistics(frequencies, (neighbors + neighbors.T).tocsr())


def _larger(rows: Iterable[np.ndarray]) -> Iterable[np.ndarray]:
    """Rows joined to fewer, larger arrays, since every sum of sparse matrices takes time."""
    waiting: list[np.ndarray] = []
    for ids in rows:
        waiting.append(ids)
        if sum(each.size for each in waiting) >= _COUNTED_AT_ONCE:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)
