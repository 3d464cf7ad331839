"""Sums and maxima in the form that a CPU computes fastest."""

from __future__ import annotations

import functools
from collections.abc import Callable

import tensorflow as tf

from albert_tf import fast_switch


def sum_rows(x: tf.Tensor) -> tf.Tensor:
    """`tf.reduce_sum` over all axes but the last, [..., width] -> [width]; summed in float32 and
    returned in x's precision.
    """
    rows = tf.reshape(x, [-1, x.shape[-1]])
    # A CPU is fastest at it as a product with ones. On accelerators such a product would have less
    # than float32's precision.
    if not fast_switch.suits_cpu():
        return tf.cast(tf.reduce_sum(tf.cast(rows, tf.float32), axis=0), x.dtype)
    return tf.squeeze(tf.matmul(tf.ones([1, tf.shape(rows)[0]], x.dtype), rows), 0)


def row_sum(x: tf.Tensor) -> tf.Tensor:
    """`tf.reduce_sum` of rows, [..., width] -> [..., 1]; to be called in a compiled function."""
    return tf.reduce_sum(folded(x, tf.add), axis=-1, keepdims=True)


def row_mean(x: tf.Tensor) -> tf.Tensor:
    """`tf.reduce_mean` of rows, [..., width] -> [..., 1]; to be called in a compiled function."""
    return row_sum(x) / tf.cast(tf.shape(x)[-1], x.dtype)


def row_max(x: tf.Tensor) -> tf.Tensor:
    """`tf.reduce_max` of rows, [..., width] -> [..., 1]; to be called in a compiled function."""
    return tf.reduce_max(folded(x, tf.maximum), axis=-1, keepdims=True)


def folded(x: tf.Tensor, operation: Callable[..., tf.Tensor]) -> tf.Tensor:
    """The first part of `tf.reduce_sum` of rows, if the operation is `tf.add`.

    [..., width] -> [..., width / 8], each column combined with those width / 8 further on; x as it
    is if it cannot be folded.

    A row of 16 numbers, added: [0, 1, ..., 15] -> [0 + 2 + ... + 14, 1 + 3 + ... + 15].
    """
    # XLA reduces a row on a CPU element by element, but combines pieces of rows with vector
    # instructions: an eighth of the row is left for the slow way.
    return functools.reduce(operation, tf.split(x, 8, axis=-1)) if folds(x) else x


def folds(x: tf.Tensor) -> bool:
    """Whether rows of x [..., width] can be folded, and are faster for it."""
    return fast_switch.suits_cpu() and x.shape[-1] is not None and x.shape[-1] % 8 == 0
