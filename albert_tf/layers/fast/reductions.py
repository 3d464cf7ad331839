"""Sums in the form that a CPU computes fastest."""

from __future__ import annotations

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
