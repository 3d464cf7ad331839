"""Attention that keeps only one tensor of the probabilities' size for its gradient."""

# Without this, a training step of 8x128 in bfloat16 takes 1.06 times as long and 1.08 times the
# memory; in float32 there is no difference (docs/benchmarks/notes.md, "What each fast piece
# gives").

from __future__ import annotations

import tensorflow as tf

from albert_tf.layers.fast.compiled import compiled


def attend(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """`operations.attend` without dropout."""

    # At 512 tokens probabilities are the largest tensors of a layer. In half precision TensorFlow's
    # own gradient keeps them twice: as the output of the softmax, and as the input of the product.
    @tf.custom_gradient
    def attended(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor):
        probs = _softmax(tf.matmul(query, key, transpose_b=True), bias)
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


@compiled
def _softmax(logits: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Softmax over keys of logits [B, N, Q, S] plus bias float32 [B, 1, 1, S], computed in float32
    and returned in the precision of the logits.
    """
    # Compiled, so that the casts and the bias take no extra pass over memory.
    return tf.cast(tf.nn.softmax(tf.cast(logits, tf.float32) + bias), logits.dtype)


@compiled
def _softmax_gradient(
    probs: tf.Tensor, d_probs: tf.Tensor, context: tf.Tensor, d_context: tf.Tensor
) -> tf.Tensor:
    """Gradient of the attention logits; it and probs, d_probs: float [B, N, Q, S]; context,
    d_context: float [B, N, Q, D].
    """
    # The gradient of a softmax is probs * (d_probs - sum(probs * d_probs)). The sum over S keys
    # equals sum(context * d_context) over D, a much smaller one (FlashAttention, Dao et al. 2022,
    # appendix B.2).
    product = tf.cast(d_context, tf.float32) * tf.cast(context, tf.float32)
    total = tf.reduce_sum(product, axis=-1, keepdims=True)
    d_logits = tf.cast(probs, tf.float32) * (tf.cast(d_probs, tf.float32) - total)
    return tf.cast(d_logits, probs.dtype)
