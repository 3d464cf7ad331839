"""The position-wise feed-forward network and the residual block around it."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers.basic import (
    Affine,
    LayerNorm,
    SeededDropout,
    activation,
    build_children,
    dense,
)


class FeedForwardWeights(NamedTuple):
    """The weights of a FeedForwardBlock as tensors."""

    intermediate: Affine
    output: Affine


class FeedForwardBlock(keras.layers.Layer):
    """LayerNorm(x + SeededDropout(Dense(act(Dense(x))))): the feed-forward half of a layer."""

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(**kwargs)
        self._config = config
        self.intermediate = dense(config.intermediate_size, config, name="intermediate")
        self.output_dense = dense(config.hidden_size, config, name="output")
        self.output_dropout = SeededDropout(config.hidden_dropout_prob, name="output_dropout")
        self.layer_norm = LayerNorm(config, name="layer_norm")

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        hidden, inner = self._config.hidden_size, self._config.intermediate_size
        build_children(
            (self.intermediate, hidden), (self.output_dense, inner), (self.layer_norm, hidden)
        )
        super().build(input_shape)

    def weights_once(self) -> FeedForwardWeights:
        """What `call` needs; made once for all layers that share this block."""
        return FeedForwardWeights(Affine.of(self.intermediate), Affine.of(self.output_dense))

    def call(
        self,
        rows: tf.Tensor,
        weights: FeedForwardWeights,
        training: bool = False,
        seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """rows: float [T, H]; weights: what `weights_once` returned; returns float [T, H]."""
        rows, output = self.branch(rows, weights, training, seed)
        return self.layer_norm(rows, output, training=training)

    def branch(
        self,
        rows: tf.Tensor,
        weights: FeedForwardWeights,
        training: bool = False,
        seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """What `call` adds up and normalizes: x and the network's output, both [T, H]."""
        activate = activation(self._config.hidden_act, training, self._config.recompute)
        inner = activate(weights.intermediate(rows, training))
        output = weights.output(inner, training)
        return rows, self.output_dropout(output, training=training, seed=seed)
