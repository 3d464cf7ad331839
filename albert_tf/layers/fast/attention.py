"""Attention whose gradient keeps the probabilities and nothing else of their size."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.layers.fast.compiled import compiled
from albert_tf.layers.fast.reductions import folds, row_max, row_sum


def attend(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """`operations.attend` without dropout; shapes are the same."""

    @tf.custom_gradient
    def attended(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor):
        probs = _masked_softmax(tf.matmul(query, key, transpose_b=True), bias)
        context = tf.matmul(probs, value)

        def gradient(upstream: tf.Tensor):
            d_probs = tf.matmul(upstream, value, transpose_b=True)
            d_logits = _softmax_gradient(probs, d_probs, context, upstream)
            return (
                tf.matmul(d_logits, key),
                tf.matmul(d_logits, query, transpose_a=True),
                tf.matmul(probs, upstream, transpose_a=True),
            )

        return context, gradient

    return attended(query, key, value)


def _masked_softmax(logits: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Softmax over keys of logits [B, N, Q, S] plus bias float32 [B, 1, 1, S], in float32.

    Where rows cannot be folded, TensorFlow's own softmax is the faster one.
    """
    if folds(logits):
        return _softmax_kernel(logits, bias)
    return tf.cast(tf.nn.softmax(tf.cast(logits, tf.float32) + bias), logits.dtype)


@compiled
def _softmax_kernel(logits: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    x = tf.cast(logits, tf.float32) + bias
    exponentials = tf.exp(x - row_max(x))
    return tf.cast(exponentials / row_sum(exponentials), logits.dtype)


@compiled
def _softmax_gradient(
    probs: tf.Tensor, d_probs: tf.Tensor, context: tf.Tensor, d_context: tf.Tensor
) -> tf.Tensor:
    """Gradient of attention logits; all but context [B, N, Q, D] and its gradient: [B, N, Q, S].

    It needs sum(probs * d_probs) over keys. That is sum(context * d_context) over D, a much smaller
    sum (FlashAttention, Dao et al. 2022, appendix B.2).
    """
    product = tf.cast(d_context, tf.float32) * tf.cast(context, tf.float32)
    d_logits = tf.cast(probs, tf.float32) * (tf.cast(d_probs, tf.float32) - row_sum(product))
    return tf.cast(d_logits, probs.dtype)
