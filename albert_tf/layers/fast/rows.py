"""Rows moved between packed and padded layouts, with gradients that move them back."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.layers import operations
from albert_tf.layers.fast.compiled import once_in_graph


@once_in_graph
def _take_rows_or_all(flat: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """`operations.take_rows`; nothing is moved, and no memory needed, when all rows are taken."""
    is_full = tf.equal(tf.shape(places)[0], tf.shape(flat)[0])
    return tf.cond(is_full, lambda: flat, lambda: operations.take_rows(flat, places))


@once_in_graph
def _put_rows_or_all(rows: tf.Tensor, places: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """`operations.put_rows`, which moves nothing when there are as many rows as places."""
    is_full = tf.equal(tf.shape(rows)[0], size)
    return tf.cond(is_full, lambda: rows, lambda: operations.put_rows(rows, places, size))


def take_rows(flat: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """`operations.take_rows`, with `put_rows` as its gradient."""

    # TensorFlow does not know that all places differ: its gradient of a gather is a sum over
    # segments, which is slower than a scatter.
    @tf.custom_gradient
    def take(values: tf.Tensor):
        size = tf.shape(values)[0]
        return _take_rows_or_all(values, places), lambda upstream: _put_rows_or_all(
            upstream, places, size
        )

    return take(flat)


def put_rows(rows: tf.Tensor, places: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """`operations.put_rows`, with `take_rows` as its gradient."""

    @tf.custom_gradient
    def put(values: tf.Tensor):
        return _put_rows_or_all(values, places, size), lambda upstream: _take_rows_or_all(
            upstream, places
        )

    return put(rows)
