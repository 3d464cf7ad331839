"""The fast forms of `Operations`, and the choice among them and the plain one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from albert_tf.layers.blocks import Block, BlockWeights, Operations
from albert_tf.layers.fast import attention, gelu, layer_norm, streams
from albert_tf.layers.fast.recompute import Recomputing
from albert_tf.layers.fast.shared_gradients import share
from albert_tf.layers.operations import DenseWeights
from albert_tf.machine import fast_switch


def operations_for(with_gradient: bool, recompute: bool = False) -> Operations:
    """The operations for one forward pass. With `recompute` activations are computed again for the
    gradient instead of being kept, by fast or by plain formulas.
    """
    # Chosen for each pass, since only then is it known whether there will be a gradient. Without
    # one, weights are read once, and the batch is split into streams. With one, it matters how the
    # gradients of shared weights are added, and streams would take memory and save no time.
    is_fast, recompute = fast_switch.is_on(), recompute and with_gradient
    if recompute:
        return RecomputingOperations() if is_fast else PlainRecomputingOperations()
    if with_gradient:
        return TrainingOperations() if is_fast else Operations()
    return InferenceOperations() if is_fast else PlainInferenceOperations()


class PlainInferenceOperations(Operations):
    """The plain formulas, with weights that are read once; exports use them."""

    def __init__(self) -> None:
        self._weights: dict[Any, Any] = {}

    def weights_of_each(self, blocks: Sequence[Block]) -> list[BlockWeights]:
        """The weights of each block, read once for all its uses and all streams."""
        # With 12 layers that share weights, a kernel is scaled, joined and cast once, not 12 times.
        # Without this, a forward pass of 8x128 in bfloat16 takes 1.09 times as long and 2.5 times
        # the memory; one of short sentences in float32 as long, and 1.5 times the memory.
        for block in dict.fromkeys(blocks):
            if block not in self._weights:
                self._weights[block] = block.read_weights()
        return [self._weights[block] for block in blocks]


class InferenceOperations(PlainInferenceOperations):
    """The plain formulas, in streams; TensorFlow itself fuses them into matrix products."""

    in_parts = staticmethod(streams.in_streams)

    def dense(self, x: tf.Tensor, weights: DenseWeights) -> tf.Tensor:
        """float [T, in] -> [T, out]."""
        # By `bias_add`, which TensorFlow fuses into the product: with `+` a forward pass takes 1.09
        # times as long. Its gradient, wrong in bfloat16 (see `operations.add_bias`), is not needed
        # here.
        return tf.nn.bias_add(tf.matmul(x, weights.kernel), weights.bias)


class _SharedGradients(Operations):
    """Reads weights once for one forward pass, and adds their gradients as they arrive."""

    uses_at_once = 1  # Number of gradients added at a time; those that wait take memory.

    def weights_of_each(self, blocks: Sequence[Block]) -> list[BlockWeights]:
        """The weights of each block, as copies whose gradients are added as they arrive: blocks
        a, a, b -> copies a1, a2, b1.
        """
        # In the order of use, because the gradients of the last copies come first, and `share` adds
        # them first. Without this, a training step takes as long, and 1.07 times the memory in
        # bfloat16, 1.11 times in float32.
        copies = {
            block: iter(share(block.read_weights(), blocks.count(block), self.uses_at_once))
            for block in dict.fromkeys(blocks)
        }
        return [next(copies[block]) for block in blocks]


class TrainingOperations(_SharedGradients):
    """Training with few passes over memory; compiled once for each number of rows."""

    row_multiple = 64  # Limits the different numbers of rows: each takes seconds to compile.
    uses_at_once = 3  # In half precision each sum is rounded: fewer sums are more exact.

    def layer_norm(self, x: tf.Tensor, norm: Any) -> tf.Tensor:
        """norm(x) of a LayerNorm."""
        return layer_norm.layer_norm(x, norm.gamma, norm.beta, norm.epsilon)

    def activation(self, name: str) -> Callable[[tf.Tensor], tf.Tensor]:
        """The function that `AlbertConfig.hidden_act` names."""
        return gelu.gelu if name == "gelu" else super().activation(name)

    @staticmethod
    def attend(
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        bias: tf.Tensor,
        dropout: Callable[[tf.Tensor], tf.Tensor] | None = None,
    ) -> tf.Tensor:
        """`operations.attend`, or its fast form if nothing is dropped."""
        if dropout:  # Its gradient needs the probabilities before and after dropout.
            return Operations.attend(query, key, value, bias, dropout)
        return attention.attend(query, key, value, bias)


class PlainRecomputingOperations(Recomputing, _SharedGradients):
    """Training in less memory, by the plain formulas."""

    # Gradients of shared weights are added as in the fast form. Otherwise weights and gradients are
    # kept for every layer, and that is more than recomputation saves on a small batch.


class RecomputingOperations(Recomputing, TrainingOperations):
    """Training in less memory."""

    uses_at_once = 1  # Recomputation is to save memory, so no gradient waits for two others.
