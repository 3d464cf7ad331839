"""Windows over a long context: where each begins, and which one a piece counts in."""

from __future__ import annotations

import functools

import numpy as np


def context_spans(num_pieces: int, max_length: int, stride: int) -> list[tuple[int, int]]:
    """Start and length of each window of a context: 10 pieces, 6, 3 -> (0, 6), (3, 6), (6, 4).

    Args:
      num_pieces: pieces of the context.
      max_length: most that a window holds.
      stride: distance between two windows, at most the length of one.
    """
    spans = []
    start = 0
    while start < num_pieces:
        length = min(num_pieces - start, max_length)
        spans.append((start, length))
        if start + length == num_pieces:
            break
        start += min(length, stride)
    return spans


@functools.lru_cache(maxsize=1024)
def max_context(spans: tuple[tuple[int, int], ...]) -> tuple[np.ndarray, ...]:
    """For each window, which of its pieces have more context there than in any other window.

    The context of a piece is the smaller number of pieces to its left and right, plus a hundredth
    of the window's length; among equals the first window wins. Windows (0, 6), (3, 6): piece 4 has
    min(4, 1) in the first and min(1, 4) in the second, so it counts in the first.

    Returns:
      bool [length] for each window.
    """
    scores = np.full((len(spans), max(map(sum, spans))), -np.inf)
    for number, (start, length) in enumerate(spans):
        left = np.arange(length)
        scores[number, start : start + length] = np.minimum(left, left[::-1]) + 0.01 * length
    best = scores.argmax(axis=0)
    return tuple(
        best[start : start + length] == number for number, (start, length) in enumerate(spans)
    )
