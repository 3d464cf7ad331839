"""GELU and its gradient in one pass each."""

# Without this, a training step of 8x128 takes 1.09 times as long and 1.24 times the memory in
# bfloat16, 1.01 and 1.30 in float32: the plain form keeps several tensors of the widest size,
# [T, F], for its gradient (docs/benchmarks/notes.md).

from __future__ import annotations

import math

import tensorflow as tf

from albert_tf.layers.fast.compiled import compiled

# GELU is x sigmoid(2 u) with u = x (A x^2 + B), and sigmoid(2 u) is 0.5 + 0.5 tanh(u), which XLA
# computes faster than the sigmoid itself.
_GELU_B = math.sqrt(2.0 / math.pi)
_GELU_A = 0.044715 * _GELU_B


@tf.custom_gradient
def gelu(x: tf.Tensor):
    """`operations.gelu` of x, float [...]; only x is kept for the gradient."""
    return _gelu(x), lambda upstream: _gelu_gradient(x, upstream)


@compiled
def _gelu(x: tf.Tensor) -> tf.Tensor:
    return tf.cast(_gelu_and_slope32(x)[0], x.dtype)


@compiled
def _gelu_gradient(x: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.cast(upstream, tf.float32) * _gelu_and_slope32(x)[1], x.dtype)


def _gelu_and_slope32(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """GELU and its slope at x, float [...] -> float32 [...]; for compiled functions."""
    # With the gate s = sigmoid(2 u), the slope of x s is s + x s (1 - s) 2 u', and
    # 2 u' = 6 A x^2 + 2 B = 6 (A x^2 + B) - 4 B: the factor that u is already computed from.
    # The slope is computed when the gradient needs it: keeping it would take one more [T, F].
    x = tf.cast(x, tf.float32)
    factor = x * x * _GELU_A + _GELU_B  # u / x
    gate = 0.5 + 0.5 * tf.tanh(x * factor)
    slope = gate + gate * (1.0 - gate) * x * (6.0 * factor - 4.0 * _GELU_B)
    return x * gate, slope
