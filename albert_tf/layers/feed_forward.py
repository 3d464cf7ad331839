"""The position-wise feed-forward network."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers.basic import LayerNorm, SeededDropout, SizedLayer, build_children, dense
from albert_tf.layers.forward_pass import ForwardPass
from albert_tf.layers.operations import DenseWeights


class FeedForwardWeights(NamedTuple):
    """The weights of a FeedForwardBlock as tensors."""

    intermediate: DenseWeights
    output: DenseWeights


class FeedForwardBlock(SizedLayer):
    """SeededDropout(Dense(act(Dense(x)))), and the normalization after it."""

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(config, config.hidden_size, **kwargs)
        self.intermediate = dense(config.intermediate_size, config, name="intermediate")
        self.output_dense = dense(config.hidden_size, config, name="output")
        self.output_dropout = SeededDropout(config.hidden_dropout_prob, name="output_dropout")
        self.layer_norm = LayerNorm(config, name="layer_norm")
        self.drops = bool(self.output_dropout.rate)

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        hidden, inner = self._config.hidden_size, self._config.intermediate_size
        build_children(
            (self.intermediate, hidden), (self.output_dense, inner), (self.layer_norm, hidden)
        )
        super().build(input_shape)

    def read_weights(self) -> FeedForwardWeights:
        """The weights that `call` takes."""
        return FeedForwardWeights(
            DenseWeights.of(self.intermediate), DenseWeights.of(self.output_dense)
        )

    def call(
        self,
        x: tf.Tensor,
        weights: FeedForwardWeights,
        forward: ForwardPass,
        seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """The network at each token.

        Args:
          x: float [T, H].
          weights: those of `read_weights`.
          forward: operations, and whether dropout is on.
          seed: int32 [2], from which the dropout mask follows; None draws a fresh one.

        Returns:
          float [T, H].
        """
        activate = forward.operations.activation(self._config.hidden_act)
        inner = activate(forward.operations.dense(x, weights.intermediate))  # [T, F]
        output = forward.operations.dense(inner, weights.output)
        return self.output_dropout(output, training=forward.training, seed=seed)
