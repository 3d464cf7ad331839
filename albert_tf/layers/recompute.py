"""Activations computed again for the gradient, instead of kept for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from albert_tf.layers import kernels
from albert_tf.layers.attention import AttentionBlock
from albert_tf.layers.feed_forward import FeedForwardBlock


class Recomputation:
    """Blocks in training, one after the other, that keep one tensor [T, H] each for the gradient.

    That is not a block's output but the sum of which the output is the normalization. Output and
    gradient of the normalization follow from it, and so the last matrix product of the block, a
    third of a layer's, is not computed again (but where dropout has to ask it for its shape, which
    packed rows do not have statically).

    Args:
      rows: float [T, H], the input of the first block.
    """

    def __init__(self, rows: tf.Tensor) -> None:
        self._total = rows
        self._norm = tf.identity

    def __call__(
        self,
        block: AttentionBlock | FeedForwardBlock,
        rows: tf.Tensor,
        weights: Any,
        *arguments: Any,
        **keywords: Any,
    ) -> tf.Tensor:
        """`block(rows, weights, ...)`; rows are the last call's result, or the first input."""
        del rows  # The norm of the sum.
        norm = self._norm

        def branch(total: tf.Tensor, weights: Any) -> tf.Tensor:
            rows = norm(total)
            return kernels.add(*block.branch(rows, weights, *arguments, **keywords))

        self._total = _computed_twice(branch)(self._total, weights)
        self._norm = functools.partial(block.layer_norm, training=True)
        return self._norm(self._total)


def _computed_twice(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """`function(rows, weights)`, computed again where its gradient is wanted.

    `tf.recompute_grad` copies all its arguments, here the weights of the model, for every layer.
    """

    @tf.custom_gradient
    def first(rows: tf.Tensor, weights: Any):
        def gradient(upstream: tf.Tensor, variables: list[tf.Variable] | None = None):
            again = _once_known(upstream, rows)
            with tf.GradientTape() as tape:
                tape.watch((again, weights))
                result = function(again, weights)
            sources = ([again, weights], variables or [])
            arguments, of_variables = tape.gradient(result, sources, upstream)
            return (arguments, of_variables) if variables else arguments

        return function(rows, weights), gradient

    return first


def _once_known(signal: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """x, but not before `signal`: XLA knows no dependencies but those of values."""
    first = tf.reshape(signal, [-1])[:1]
    nothing = tf.reduce_sum(tf.where(tf.math.is_finite(first), tf.zeros_like(first), first))
    return x + tf.cast(nothing, x.dtype)
