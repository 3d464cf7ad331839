"""The operations of layers in their fast form, and the choice between both forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from albert_tf import fast_switch
from albert_tf.layers.fast import attention, dense, gelu, layer_norm, rows, streams
from albert_tf.layers.fast.recompute import Recomputing
from albert_tf.layers.fast.shared_gradients import share
from albert_tf.layers.operations import DenseWeights, Operations

_USES_AT_ONCE = 6  # So many gradients of shared weights are added at a time.


def operations_for(training: bool, recompute: bool = False) -> Operations:
    """The operations for one forward pass, which are the plain ones when the fast form is off.

    Args:
      training: whether there will be a gradient.
      recompute: activations are computed again for it instead of being kept.
    """
    if fast_switch.is_on():
        chosen = TrainingOperations if training else InferenceOperations
    else:
        chosen = Operations
    if training and recompute:
        chosen = type(f"Recomputing{chosen.__name__}", (Recomputing, chosen), {})
    return chosen()


class InferenceOperations(Operations):
    """The plain formulas, which TensorFlow fuses into matrix products by itself, in streams."""

    take_rows = staticmethod(rows.take_rows_or_all)
    put_rows = staticmethod(rows.put_rows_or_all)
    in_parts = staticmethod(streams.in_streams)


class TrainingOperations(Operations):
    """Few passes over memory, forward and backward; compiled once for each number of rows."""

    row_multiple = 64  # Every new number of rows takes seconds of compiling.
    take_rows = staticmethod(rows.take_rows)
    put_rows = staticmethod(rows.put_rows)
    in_parts = staticmethod(streams.in_streams)

    def weights_of_each(self, blocks: Sequence[Any]) -> list[Any]:
        names = [block.name for block in blocks]
        copies = {
            block.name: iter(share(block.read_weights(), names.count(block.name), _USES_AT_ONCE))
            for block in dict.fromkeys(blocks)
        }
        return [next(copies[name]) for name in names]

    def layer_norm(self, x: tf.Tensor, norm: Any) -> tf.Tensor:
        return layer_norm.layer_norm(x, norm.gamma, norm.beta, norm.epsilon)

    def dense(self, x: tf.Tensor, weights: DenseWeights) -> tf.Tensor:
        return dense.dense(x, *weights)

    def activation(self, name: str) -> Callable[[tf.Tensor], tf.Tensor]:
        return gelu.gelu if name == "gelu" else super().activation(name)

    @staticmethod
    def attend(
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        bias: tf.Tensor,
        dropout: Callable[[tf.Tensor], tf.Tensor] | None = None,
    ) -> tf.Tensor:
        if dropout:  # Its gradient needs the probabilities before it and after it.
            return Operations.attend(query, key, value, bias, dropout)
        return attention.attend(query, key, value, bias)
