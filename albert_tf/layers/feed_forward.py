"""The position-wise feed-forward network and the residual block around it."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers.basic import Dropout, LayerNorm, activation, build_children, dense


class FeedForwardBlock(keras.layers.Layer):
    """LayerNorm(x + Dropout(Dense(act(Dense(x))))): the feed-forward half of a layer."""

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(**kwargs)
        self._config = config
        self._activation = activation(config.hidden_act)
        self.intermediate = dense(config.intermediate_size, config, name="intermediate")
        self.output_dense = dense(config.hidden_size, config, name="output")
        self.output_dropout = Dropout(config.hidden_dropout_prob, name="output_dropout")
        self.layer_norm = LayerNorm(config, name="layer_norm")

    def build(self, input_shape: tf.TensorShape | None = None) -> None:
        hidden, inner = self._config.hidden_size, self._config.intermediate_size
        build_children(
            (self.intermediate, hidden), (self.output_dense, inner), (self.layer_norm, hidden)
        )
        super().build(input_shape)

    def call(
        self, rows: tf.Tensor, training: bool = False, seed: tf.Tensor | None = None
    ) -> tf.Tensor:
        """rows: float [T, H]; returns float [T, H]."""
        output = self.output_dense(self._activation(self.intermediate(rows)))
        output = self.output_dropout(output, training=training, seed=seed)
        return self.layer_norm(rows + output)
