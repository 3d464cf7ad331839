"""The position-wise feed-forward network."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.layers.basic import LayerNorm, SeededDropout, SizedLayer, build_children, dense_layer
from albert_tf.layers.blocks import BlockWeights
from albert_tf.layers.forward_pass import ForwardPass
from albert_tf.layers.operations import DenseWeights, Seed


class FeedForwardBlock(SizedLayer):
    """SeededDropout(Dense(act(Dense(x)))), and the normalization after it."""

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(config, config.hidden_size, **kwargs)
        self.intermediate = dense_layer(config.intermediate_size, config, name="intermediate")
        self.output_dense = dense_layer(config.hidden_size, config, name="output")
        self.output_dropout = SeededDropout(config.hidden_dropout_prob, name="output_dropout")
        self.layer_norm = LayerNorm(config, name="layer_norm")
        self.drops = bool(self.output_dropout.rate)

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        build_children(self._config.hidden_size, self.intermediate, self.layer_norm)
        build_children(self._config.intermediate_size, self.output_dense)
        super().build(input_shape)

    def read_weights(self) -> BlockWeights:
        """The weights of the intermediate layer, and of the output."""
        return DenseWeights.of(self.intermediate), DenseWeights.of(self.output_dense)

    def call(
        self, x: tf.Tensor, weights: BlockWeights, forward: ForwardPass, seed: Seed = None
    ) -> tf.Tensor:
        """The network at each token, float [T, H] -> [T, H]."""
        for_inner, for_output = weights
        activate = forward.operations.activation(self._config.hidden_act)
        inner = activate(forward.operations.dense(x, for_inner))  # [T, F]
        output = forward.operations.dense(inner, for_output)
        return self.output_dropout(output, training=forward.training, seed=seed)
