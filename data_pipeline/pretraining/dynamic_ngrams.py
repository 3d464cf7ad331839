"""N-grams to be predicted, chosen in a TensorFlow graph as masking.py chooses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf


def positions_of(values: tf.Tensor) -> tf.Tensor:
    """int32 [B, S]: 0, 1, 2, ... in each row."""
    return tf.broadcast_to(tf.range(tf.shape(values)[1]), tf.shape(values))


class _Words(NamedTuple):
    """The words of B rows by their places; a place is a word or a special piece.

        tokens   [CLS] ▁un believ able [SEP] ▁yes [SEP] (padding)
        places     0    1    1     1     2     3     4     4     starts [0, 1, 4, 5, 6]
        special  [0, 2, 4];  words [1, 3];  segment_ends [2, 4], the special place after each word

    Attributes:
      places: int32 [B, S], the place of each token.
      starts: int32 [B, places + N], position of the first token of each place; 0 after the last.
      words: int32 [B, words], the places that are words; 0 after the last.
      count: int32 [B], number of words.
      segment_ends: int32 [B, words].
    """

    places: tf.Tensor
    starts: tf.Tensor
    words: tf.Tensor
    count: tf.Tensor
    segment_ends: tf.Tensor


def _find_words(boundary: tf.Tensor, is_special: tf.Tensor, longest: int) -> _Words:
    """The words of rows, bool [B, S] each; longest: N, words of an n-gram, which may look so far
    beyond the end.
    """
    places = tf.cumsum(tf.cast(boundary, tf.int32), axis=1) - 1
    starts = tf.ragged.boolean_mask(positions_of(boundary), boundary).to_tensor()
    starts = tf.pad(starts, [[0, 0], [0, longest]])
    special = tf.ragged.boolean_mask(places, is_special).to_tensor(tf.int32.max)  # Ascending.
    found = tf.ragged.boolean_mask(places, boundary & ~is_special)  # [B, (words)]
    count = tf.cast(found.row_lengths(), tf.int32)
    words = tf.pad(found.to_tensor(), [[0, 0], [0, 1]])  # Something to gather without words, too.
    after = tf.searchsorted(special, words, side="right")
    return _Words(places, starts, words, count, tf.gather(special, after, batch_dims=1))


class _State(NamedTuple):
    """The state between rounds; everything is a tensor [B, places], so that a round is a handful of
    small operations, whatever the number of rows.

    Attributes:
      number: of the round.
      left: int32 [B], tokens that may still be predicted.
      unvisited: int32 [B], number of words that were not drawn yet.
      visited: bool [B, places + N], the words that were.
      ngrams: int32 [B, places + N]: 0, or the number of the n-gram that the place is in.
    """

    number: tf.Tensor
    left: tf.Tensor
    unvisited: tf.Tensor
    visited: tf.Tensor
    ngrams: tf.Tensor

    @property
    def active(self) -> tf.Tensor:
        """bool [B], rows that have not ended."""
        return (self.left > 0) & (self.unvisited > 0)


def _visit(state: _State, words: _Words, thresholds: np.ndarray, draws: tf.Tensor) -> _State:
    """A round: each row visits the word that its draws, float64 [2, B], name.

    A row of words at places 0 to 4 that begin at tokens 0, 1, 3, 4, 6, with 3 tokens left, draws
    word 1 and an n of 2, which words 1 and 2 fill:

        first 1 -> members [1, 2, 3] -> spans [2, 3, 5] -> in_ngram [yes, yes, no] -> length 2

    The third would be one word more than drawn, and more tokens than are left.
    """
    sizes = tf.range(len(thresholds))[None]  # n - 1
    limits = tf.constant(thresholds)
    lower_limits = tf.concat([[tf.constant(-1.0, tf.float64)], limits[:-1]], axis=0)[None]
    places = tf.range(tf.shape(words.starts)[1])[None]

    # With replacement: a word that was drawn before costs a round, but needs no permutation.
    word = tf.cast(draws[0] * tf.cast(words.count, tf.float64), tf.int32)
    first = tf.gather(words.words, word, batch_dims=1)  # [B], a place
    fresh = state.active & ~tf.gather(state.visited, first, batch_dims=1)
    segment_end = tf.gather(words.segment_ends, word, batch_dims=1)
    available = tf.clip_by_value(segment_end - first, 1, len(thresholds))
    wanted = draws[1] * tf.gather(limits, available - 1)

    members = first[:, None] + sizes  # [B, N]
    begin = tf.gather(words.starts, first[:, None], batch_dims=1)
    spans = tf.gather(words.starts, members + 1, batch_dims=1) - begin
    in_ngram = (wanted[:, None] >= lower_limits) & (sizes < available[:, None])
    in_ngram &= spans <= state.left[:, None]
    taken = tf.gather(state.ngrams, members, batch_dims=1) > 0
    # in_ngram is true up to some n and false from there on, so its sum is that n.
    length = tf.reduce_sum(tf.cast(in_ngram, tf.int32), axis=1)
    accepted = fresh & (length > 0) & ~tf.reduce_any(taken & in_ngram, axis=1)
    length = tf.where(accepted, length, 0)

    is_member = (places >= first[:, None]) & (places < (first + length)[:, None])
    end = tf.gather(words.starts, (first + length)[:, None], batch_dims=1)
    visited = state.visited | ((places == first[:, None]) & fresh[:, None])
    ngrams = tf.where(is_member, state.number + 1, state.ngrams)
    return _State(
        state.number + 1,
        state.left - (end - begin)[:, 0],
        state.unvisited - tf.cast(fresh, tf.int32),
        tf.ensure_shape(visited, state.visited.shape),
        tf.ensure_shape(ngrams, state.ngrams.shape),
    )


def choose_ngrams(
    boundary: tf.Tensor,
    is_special: tf.Tensor,
    budgets: tf.Tensor,
    thresholds: np.ndarray,
    draw: Callable[[tf.Tensor], tf.Tensor],
    excluded: tf.Tensor | None = None,
) -> tf.Tensor:
    """`masking.choose_ngrams` in a graph; the same draws give the same choice.

    Args:
      boundary, is_special: bool [B, S], see `masking.find_words`.
      budgets: int32 [B], largest number of tokens to predict.
      thresholds: float64 [N], see `masking.ngram_thresholds`.
      draw: number of a round -> float64 [2, B] in [0, 1): which word, which n.
      excluded: bool [B, S], tokens whose words no n-gram may hold.

    Returns:
      int32 [B, S]: 0, or the number of the n-gram that the token is in.
    """
    words = _find_words(boundary, is_special, len(thresholds))
    taken = tf.zeros_like(words.starts)
    if excluded is not None:  # An n-gram of their own, which is taken away at the end.
        rows = tf.cast(tf.where(excluded)[:, 0], tf.int32)
        cells = tf.stack([rows, tf.boolean_mask(words.places, excluded)], axis=1)
        taken = tf.minimum(1, tf.scatter_nd(cells, tf.ones_like(rows), tf.shape(taken)))
    last = tf.while_loop(
        lambda *state: tf.reduce_any(_State(*state).active),
        lambda *state: _visit(_State(*state), words, thresholds, draw(state[0])),
        _State(0, budgets, words.count, tf.zeros_like(words.starts, tf.bool), taken),
        parallel_iterations=1,
    )
    ngrams = tf.where(taken > 0, 0, last.ngrams)
    in_range = tf.minimum(words.places, tf.shape(words.starts)[1] - 1)
    return tf.ensure_shape(tf.gather(ngrams, in_range, batch_dims=1), boundary.shape)
