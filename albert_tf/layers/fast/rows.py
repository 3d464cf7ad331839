"""Rows moved between packed and padded layouts, with gradients that move them back."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.layers import operations
from albert_tf.layers.fast.compiled import once_in_graph

take_rows_once = once_in_graph(operations.take_rows)
put_rows_once = once_in_graph(operations.put_rows)


def take_rows(flat: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """`operations.take_rows`; its gradient is a scatter of different places, which is faster than
    the sum over segments that TensorFlow's gradient of a gather is.
    """

    @tf.custom_gradient
    def take(values: tf.Tensor):
        size = tf.shape(values)[0]
        return take_rows_once(values, places), lambda upstream: put_rows_once(
            upstream, places, size
        )

    return take(flat)


def put_rows(rows: tf.Tensor, places: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """`operations.put_rows`; its gradient is a gather."""

    @tf.custom_gradient
    def put(values: tf.Tensor):
        return put_rows_once(values, places, size), lambda upstream: take_rows_once(
            upstream, places
        )

    return put(rows)
