"""N-grams chosen in a graph are those of masking.py."""

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.pretraining import masking
from data_pipeline.pretraining.dynamic_ngrams import choose_ngrams

SEGMENT = st.lists(st.booleans(), min_size=1, max_size=40)  # Which tokens start words.


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.lists(SEGMENT, min_size=1, max_size=4), min_size=1, max_size=4),
    st.integers(1, 3),
    st.integers(1, 20),
    st.integers(0, 99),
    st.booleans(),
)
def test_equal_draws_give_the_choice_of_masking(rows, ngram, budget, seed, excludes):
    """Of records with one segment and more; some tokens may be excluded."""
    size = max(1 + sum(len(segment) + 1 for segment in row) for row in rows)
    boundary = np.zeros([len(rows), size], bool)
    special = np.zeros_like(boundary)
    for i, segments in enumerate(rows):
        row = [True, *(start for segment in segments for start in (True, *segment[1:], True))]
        boundary[i, : len(row)] = row
        special[i, np.cumsum([0, *(len(segment) + 1 for segment in segments)])] = True
    rng = np.random.default_rng(seed)
    draws = rng.random((4000, 2, len(rows)))
    thresholds = masking.ngram_thresholds(ngram, True)
    budgets = np.full(len(rows), budget)
    words = masking.find_words(boundary, special)
    is_token = np.arange(size) < boundary.shape[1] - np.argmax(boundary[:, ::-1], axis=1)[:, None]
    tokens = (rng.random(boundary.shape) < 0.2) & ~special & is_token if excludes else None
    excluded = None if tokens is None else masking._words_with(tokens, boundary, special)
    expected = masking.choose_ngrams(
        words, budgets, thresholds, lambda number: draws[number], excluded
    )
    found = choose_ngrams(
        tf.constant(boundary),
        tf.constant(special),
        tf.constant(budgets, tf.int32),
        thresholds,
        lambda number: tf.gather(tf.constant(draws), number),
        None if tokens is None else tf.constant(tokens),
    ).numpy()
    for row in range(len(rows)):
        numbers = np.zeros(size, np.int64)
        for word in range(words.first[row], words.first[row + 1]):
            numbers[words.starts[word] : words.ends[word]] = expected[word]
        np.testing.assert_array_equal(found[row], numbers)
    if tokens is not None:
        assert not found[tokens].any()
