"""Windows cover a context, and each piece counts in the window with the most around it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from data_pipeline.finetuning.context_spans import context_spans, max_context


def test_windows():
    assert context_spans(10, 6, 3) == [(0, 6), (3, 6), (6, 4)]
    assert context_spans(6, 6, 3) == [(0, 6)]
    assert context_spans(7, 6, 6) == [(0, 6), (6, 1)]
    assert context_spans(13, 5, 128) == [(0, 5), (5, 5), (10, 3)]  # A stride leaves no gap.
    assert context_spans(0, 6, 3) == []


def test_max_context():
    found = max_context(((0, 6), (3, 6), (6, 4)))
    assert [window.astype(int).tolist() for window in found] == [
        [1, 1, 1, 1, 1, 0],
        [0, 0, 1, 1, 1, 0],
        [0, 0, 1, 1],
    ]
    assert max_context(((0, 3),))[0].tolist() == [True] * 3


def test_a_longer_window_wins_by_a_hundredth_of_its_length():
    """Piece 4 has nothing to one side of it in both windows."""
    assert max_context(((0, 5), (4, 6)))[0].tolist() == [True] * 4 + [False]
    assert max_context(((0, 5), (4, 5)))[0].tolist() == [True] * 5  # The first of equals.


@given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 30))
def test_every_piece_counts_once(pieces, length, stride):
    spans = context_spans(pieces, length, stride)
    counts = np.zeros(pieces, int)
    for (start, size), counted in zip(spans, max_context(tuple(spans))):
        counts[start : start + size] += counted
    assert (counts == 1).all()
