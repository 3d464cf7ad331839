"""Activations computed again for the gradient, instead of kept for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from albert_tf.layers import kernels
from albert_tf.layers.attention import AttentionBlock
from albert_tf.layers.basic import LayerNorm
from albert_tf.layers.feed_forward import FeedForwardBlock
from albert_tf.layers.functions import once_in_graph


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
        self._norm: LayerNorm | None = None  # Makes the input of the next block from the total.
        self._branches: dict[tuple[int, ...], _Branch] = {}

    def __call__(
        self,
        block: AttentionBlock | FeedForwardBlock,
        rows: tf.Tensor,
        weights: Any,
        *arguments: Any,
        training: bool,
        seed: tf.Tensor | None,
    ) -> tf.Tensor:
        """`block(rows, weights, ...)`; rows are the last call's result, or the first input."""

        def branch(rows: tf.Tensor, weights: Any, seed: tf.Tensor | None) -> tf.Tensor:
            return kernels.add(*block.branch(rows, weights, *arguments, training, seed))

        # Layers that use the same objects have the same operations.
        key = tuple(map(id, (self._norm, block, *arguments)))
        if key not in self._branches:
            self._branches[key] = _Branch(self._norm, branch)
        self._total = self._branches[key](self._total, rows, weights, seed)
        self._norm = block.layer_norm
        return self._norm(self._total, training=training)


class _Branch:
    """A function of normalized rows that is computed again where its gradient is wanted."""

    def __init__(self, norm: LayerNorm | None, function: Callable[..., tf.Tensor]) -> None:
        """How to compute it.

        Args:
          norm: what the rows are normalized with; None: they are not.
          function: rows [T, H], weights and a seed -> [T, H]; reads no variables.
        """

        def gradient(
            total: tf.Tensor,
            norm_weights: tuple[tf.Tensor, ...],
            weights: Any,
            seed: tf.Tensor | None,
            upstream: tf.Tensor,
        ) -> tuple[Any, ...]:
            again = _once_known(upstream, total)
            sources = again, norm_weights, weights
            with tf.GradientTape() as tape:
                tape.watch(sources)
                rows = again
                if norm is not None:
                    rows = kernels.norm(again, None, *norm_weights, norm.epsilon)
                result = function(rows, weights, seed)
            return tape.gradient(result, sources, upstream)

        self._norm = norm
        self._function = once_in_graph(function, inline=False)
        self._gradient = once_in_graph(gradient, inline=False)

    def __call__(
        self, total: tf.Tensor, rows: tf.Tensor, weights: Any, seed: tf.Tensor | None
    ) -> tf.Tensor:
        """The function of rows, which are the norm of total; the gradient keeps total only.

        total, rows and the result: float [T, H]; seed: int32 [2].
        """

        # `tf.recompute_grad` copies all its arguments, the weights of the model, for every layer.
        @tf.custom_gradient
        def value(total: tf.Tensor, norm_weights: tuple[tf.Tensor, ...], weights: Any):
            def gradient(upstream: tf.Tensor) -> tuple[Any, ...]:
                return self._gradient(total, norm_weights, weights, seed, upstream)

            return self._function(rows, weights, seed), gradient

        variables = () if self._norm is None else (self._norm.gamma, self._norm.beta)
        return value(total, tuple(map(tf.convert_to_tensor, variables)), weights)


def _once_known(signal: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """x, but not before `signal`: XLA knows no dependencies but those of values."""
    first = tf.reshape(signal, [-1])[:1]
    nothing = tf.reduce_sum(tf.where(tf.math.is_finite(first), tf.zeros_like(first), first))
    return x + tf.cast(nothing, x.dtype)
