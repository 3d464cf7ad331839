"""Activations computed again for the gradient, instead of kept for it (Chen et al. 2016)."""

# Forward, the tensors in brackets are kept, one [T, H] a block:
#
#     [total] -> x = norm(total) -> [next total] = x + block(x) -> ...
#
# Backward, from the last block to the first: x is computed again from total, then block(x) under a
# tape, and its gradient is taken. All memory that this needs is free before the next block. Gain: 2
# to 3 times less memory, for 1.2 to 1.3 times the time (docs/benchmarks/notes.md).

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf.layers.blocks import Operations, ReadyBlock
from albert_tf.layers.fast.compiled import once_in_graph
from albert_tf.layers.operations import Seed


class _Norm(NamedTuple):
    """A LayerNorm whose variables have been read."""

    gamma: tf.Tensor
    beta: tf.Tensor
    epsilon: float


class _RecomputedReadyBlock(ReadyBlock):
    """A `ReadyBlock` whose output is computed again for its gradient."""

    def __call__(self, x: tf.Tensor, forward: Any, *positions: Any, seed: Seed) -> tf.Tensor:
        assert isinstance(self.operations, Recomputing)
        return self.operations.recomputed(self, x, forward, *positions, seed=seed)


class Recomputing(Operations):
    """Operations under which the blocks of a stack keep one tensor [T, H] each for the gradient.

    A mixin: among the bases, it comes before the class that computes the formulas.
    """

    # In `x = norm(total)` the gradient of the norm keeps total anyway. So a block that is applied
    # to x need not keep x: its gradient computes x from total again, and then the block, except for
    # its last matrix product, whose result no gradient needs (dropout of packed rows needs its
    # shape, though). An object is for one stack of layers only, since it stores what the last norm
    # was computed from: layers are independent of recomputation, and pass x, not total.
    ready_block = _RecomputedReadyBlock

    def __init__(self) -> None:
        super().__init__()
        # The last call of `layer_norm`: _x = _norm(_total).
        self._x: tf.Tensor | None = None
        self._total: tf.Tensor | None = None
        self._norm: Any = None
        self._blocks: dict[tuple[Any, ...], _RecomputedBlock] = {}

    def in_parts(self, function: Callable[..., Any], batch: Any) -> Any:
        """function(*batch); afterwards, no tensor of this batch is kept."""
        result = function(*batch)
        self._x = self._total = self._norm = None  # Eagerly they would live as long as this object.
        self._blocks.clear()
        return result

    def layer_norm(self, x: tf.Tensor, norm: Any) -> tf.Tensor:
        """norm(x) of a LayerNorm, remembered for the block that is applied to it next."""
        self._x, self._total, self._norm = super().layer_norm(x, norm), x, norm
        return self._x

    def recomputed(
        self, ready: ReadyBlock, x: tf.Tensor, forward: Any, *positions: Any, seed: Seed
    ) -> tf.Tensor:
        """The output of a block, [T, H] or [B * P, H], which is computed again for its gradient."""
        block = ready.block
        # The first x is the embedding, perhaps projected, not a norm's output: x itself is kept.
        norm = self._norm if x is self._x else None
        # One function for each combination of block, norm before it, and whether positions are
        # given, as in the last layer: layers that share weights share the function and its graph.
        key = (block.name, norm and norm.gamma.name, *(given is None for given in positions))
        if key not in self._blocks:

            def function(x: tf.Tensor, weights: Any, seed: tf.Tensor | None) -> tf.Tensor:
                return block(x, weights, forward, *positions, seed=seed)

            self._blocks[key] = _RecomputedBlock(function, norm and super().layer_norm, norm)
        if seed is None and block.drops:  # Both computations have to draw the same dropout masks.
            seed = tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)
        return self._blocks[key](x, self._total if norm else x, ready.weights, seed)


class _RecomputedBlock:
    """A block as a function of x that keeps for its gradient only what x was normalized from."""

    def __init__(
        self,
        function: Callable[..., tf.Tensor],
        layer_norm: Callable[..., tf.Tensor] | None,
        norm: Any,
    ) -> None:
        """
        Args:
          function: x float [T, H], weights and a seed -> [T, H]; reads no variables.
          layer_norm: (total, norm) -> x; None: x is total.
        """

        def gradient(
            total: tf.Tensor,
            norm: _Norm | None,
            weights: Any,
            seed: tf.Tensor | None,
            upstream: tf.Tensor,
        ) -> tuple[Any, ...]:
            # `upstream` is available once the gradients of all later blocks are.
            again = _after(upstream, total)
            x = layer_norm(again, norm) if layer_norm else again
            with tf.GradientTape() as tape:
                tape.watch((x, weights))
                result = function(x, weights, seed)
            return tape.gradient(result, (x, weights), upstream)

        # Not inlined: a call starts only when all its arguments, such as `upstream`, are computed,
        # and its memory is free before the next one starts.
        self._norm = norm
        self._function = once_in_graph(function, inline=False)
        self._gradient = once_in_graph(gradient, inline=False)

    def __call__(
        self, x: tf.Tensor, total: tf.Tensor, weights: Any, seed: tf.Tensor | None
    ) -> tf.Tensor:
        """The block's output for x, the norm of total, both float [T, H]."""
        norm = None
        if self._norm is not None:
            gamma, beta = map(tf.convert_to_tensor, (self._norm.gamma, self._norm.beta))
            norm = _Norm(gamma, beta, self._norm.epsilon)

        # Not `tf.recompute_grad`, which copies all arguments, the model's weights, for every layer.
        @tf.custom_gradient
        def value(x: tf.Tensor, weights: Any):
            def gradient(upstream: tf.Tensor) -> tuple[Any, ...]:
                return self._gradient(total, norm, weights, seed, upstream)

            return self._function(x, weights, seed), gradient

        return value(x, weights)


def _after(signal: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Delays x until `signal` is computed, by adding a zero that depends on it."""
    # Without the delay TensorFlow would recompute all blocks at once, since total is available, and
    # keep the results until they are needed. A control dependency is not enough: XLA only respects
    # data dependencies. The zero is the signal itself where that is not finite, so no compiler can
    # prove that it is always zero.
    first = tf.reshape(signal, [-1])[:1]
    nothing = tf.reduce_sum(tf.where(tf.math.is_finite(first), tf.zeros_like(first), first))
    return x + tf.cast(nothing, x.dtype)
