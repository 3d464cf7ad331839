"""Windows over a long context: where each begins, and which one a piece counts in."""

from __future__ import annotations

import functools

import numpy as np


def context_spans(num_pieces: int, max_length: int, stride: int) -> list[tuple[int, int]]:
    """Start and length of each window of a context: 10 pieces, 6, 3 -> (0, 6), (3, 6), (6, 4)."""
    spans = []
    start = 0
    while start < num_pieces:
        length = min(num_pieces - start, max_length)
        spans.append((start, length))
        if start + length == num_pieces:
            break  # A further window would hold nothing that this one lacks.
        # No piece is left out between two windows, however long the stride.
        start += min(length, stride)
    return spans


@functools.lru_cache(maxsize=1024)
def max_context(spans: tuple[tuple[int, int], ...]) -> tuple[np.ndarray, ...]:
    """For each window, bool [length]: the pieces that have more context there than in any other.

    Windows (0, 6), (3, 6): piece 4 has min(4, 1) in the first and min(1, 4) in the second; as both
    are 1, the first wins.
    """
    # As in BERT: the smaller number of pieces to the left and right, and a hundredth of the length
    # of the window, which prefers longer windows among equals; argmax takes the first of the rest.
    scores = np.full((len(spans), max(map(sum, spans))), -np.inf)
    for number, (start, length) in enumerate(spans):
        left = np.arange(length)
        scores[number, start : start + length] = np.minimum(left, left[::-1]) + 0.01 * length
    best = scores.argmax(axis=0)
    return tuple(
        best[start : start + length] == number for number, (start, length) in enumerate(spans)
    )
