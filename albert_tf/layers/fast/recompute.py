"""Activations computed again for the gradient, instead of kept for it (Chen et al. 2016)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf.layers.fast.compiled import once_in_graph
from albert_tf.layers.operations import Operations, fold_in


class _Norm(NamedTuple):
    """A LayerNorm whose variables have been read."""

    gamma: tf.Tensor
    beta: tf.Tensor
    epsilon: float


class Recomputing(Operations):
    """Makes the blocks of a stack keep one tensor [T, H] each for the gradient.

    In `x = norm(total)` the gradient of the norm keeps total anyway. So a block that is applied to
    x need not keep x: its gradient makes x of total again, and then computes the block again, but
    for its last matrix product, whose result no gradient needs (dropout of packed rows asks it for
    its shape, though).

    To be inherited from before the operations that do the computing; for one stack of layers.
    """

    def __init__(self) -> None:
        super().__init__()
        self._x: tf.Tensor | None = None  # The last result of `layer_norm`;
        self._total: tf.Tensor | None = None  # what it was made of,
        self._norm: Any = None  # by which layer.
        self._blocks: dict[tuple[Any, ...], _RecomputedBlock] = {}

    def in_parts(self, function: Callable[..., Any], batch: Any, seed: tf.Tensor | None) -> Any:
        """In one part: whoever recomputes prefers less memory to less time."""
        result = function(*batch, fold_in(seed, 0))
        self._x = self._total = self._norm = None  # Eagerly they would live as long as this does.
        self._blocks.clear()
        return result

    def layer_norm(self, x: tf.Tensor, norm: Any) -> tf.Tensor:
        self._x, self._total, self._norm = super().layer_norm(x, norm), x, norm
        return self._x

    def apply(self, block: Any, x: tf.Tensor, *arguments: Any) -> tf.Tensor:
        weights, forward, *others, seed = arguments
        norm = self._norm if x is self._x else None  # The first x is no norm of anything.
        # Layers that share their weights have the same operations: the graph holds them once.
        key = (block.name, norm and norm.gamma.name, *(other is None for other in others))
        if key not in self._blocks:

            def function(x: tf.Tensor, weights: Any, seed: tf.Tensor | None) -> tf.Tensor:
                return block(x, weights, forward, *others, seed)

            self._blocks[key] = _RecomputedBlock(function, norm and super().layer_norm, norm)
        if seed is None and block.drops:  # Both computations have to draw the same dropout masks.
            seed = tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)
        return self._blocks[key](x, self._total if norm else x, weights, seed)


class _RecomputedBlock:
    """A function of x that keeps for its gradient only what x was normalized from."""

    def __init__(
        self,
        function: Callable[..., tf.Tensor],
        layer_norm: Callable[..., tf.Tensor] | None,
        norm: Any,
    ) -> None:
        """How to compute it.

        Args:
          function: x float [T, H], weights and a seed -> [T, H]; reads no variables.
          layer_norm: (total, norm) -> x; None: x is total.
          norm: the LayerNorm that made x.
        """

        def gradient(
            total: tf.Tensor,
            norm: _Norm | None,
            weights: Any,
            seed: tf.Tensor | None,
            upstream: tf.Tensor,
        ) -> tuple[Any, ...]:
            again = _after(upstream, total)
            x = layer_norm(again, norm) if layer_norm else again
            with tf.GradientTape() as tape:
                tape.watch((x, weights))
                result = function(x, weights, seed)
            return tape.gradient(result, (x, weights), upstream)

        self._norm = norm
        self._function = once_in_graph(function, inline=False)
        self._gradient = once_in_graph(gradient, inline=False)

    def __call__(
        self, x: tf.Tensor, total: tf.Tensor, weights: Any, seed: tf.Tensor | None
    ) -> tf.Tensor:
        """function(x, weights, seed).

        Args:
          x: float [T, H].
          total: float [T, H], of which x is the norm.
          weights: tensors.
          seed: int32 [2].
        """
        norm = None
        if self._norm is not None:
            gamma, beta = map(tf.convert_to_tensor, (self._norm.gamma, self._norm.beta))
            norm = _Norm(gamma, beta, self._norm.epsilon)

        # `tf.recompute_grad` copies all its arguments, the weights of the model, for every layer.
        @tf.custom_gradient
        def value(x: tf.Tensor, weights: Any):
            def gradient(upstream: tf.Tensor) -> tuple[Any, ...]:
                return self._gradient(total, norm, weights, seed, upstream)

            return self._function(x, weights, seed), gradient

        return value(x, weights)


def _after(signal: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """x, but not before `signal` is there: without it TensorFlow would compute all blocks again
    right away, and keep them; and XLA knows no dependencies but those of values.
    """
    first = tf.reshape(signal, [-1])[:1]
    nothing = tf.reduce_sum(tf.where(tf.math.is_finite(first), tf.zeros_like(first), first))
    return x + tf.cast(nothing, x.dtype)
