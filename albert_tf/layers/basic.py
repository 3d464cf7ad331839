"""The small layers that blocks and heads are made of: dense, dropout, layer normalization."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers.operations import Seed, add_bias, layer_norm


def initializer(config: AlbertConfig) -> keras.initializers.Initializer:
    """Truncated normal, cut at two standard deviations: every kernel and table of the reference."""
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


class Dense(keras.layers.Dense):
    """Keras's dense layer, except that the bias has an exact gradient in bfloat16: `add_bias`."""

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """(None, units), which `summary()` shows."""
        return (None, self.units)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """float [..., in] -> [..., units]."""
        if not self.use_bias or self.compute_dtype != "bfloat16":
            return super().call(inputs)
        product = tf.tensordot(tf.cast(inputs, tf.bfloat16), self.kernel, 1)
        return self.activation(add_bias(product, self.bias))


def dense_layer(units: int, config: AlbertConfig, name: str, **settings: Any) -> Dense:
    """A dense layer with the configuration's initializer and other settings, not built."""
    return Dense(units, kernel_initializer=initializer(config), name=name, **settings)


def build_children(width: int, *layers: keras.layers.Layer) -> None:
    """Builds layers for inputs [..., width], their variables named after them."""
    # Called explicitly, since variables with these names have to exist before the first call:
    # weights are loaded into models that have not been called yet.
    for layer in layers:
        with tf.name_scope(layer.name):
            layer.build(tf.TensorShape([None, width]))


class SizedLayer(keras.layers.Layer):
    """A layer of known output width, which `summary()` shows."""

    # A subclassed Keras model has no graph of layers, so Keras would print "multiple" instead.

    def __init__(self, config: AlbertConfig, width: int, **kwargs) -> None:
        super().__init__(**kwargs)
        self._config = config
        self._width = width
        self._leading_axes: tuple[int | None, ...] = (None, None)  # Batch and sequence.

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """E.g. (None, None, H), as layers of functional models have it."""
        return (*self._leading_axes, self._width)


class SeededDropout(keras.layers.Layer):
    """Dropout whose mask is a function of a seed."""

    # So a resumed run draws the same masks as an uninterrupted one, and a block that is recomputed
    # for its gradient drops the same entries both times.

    def __init__(self, rate: float, **kwargs) -> None:
        super().__init__(**kwargs)
        self.rate = rate

    def call(self, x: tf.Tensor, training: bool = False, seed: Seed = None) -> tf.Tensor:
        """x, in training with dropout of probability `rate`."""
        if not training or self.rate == 0:
            return x
        if seed is None:  # As in `fit`, which is not reproducible bit by bit.
            return tf.nn.dropout(x, self.rate)
        return tf.nn.experimental.stateless_dropout(x, self.rate, seed)


class LayerNorm(keras.layers.Layer):
    """Layer normalization over the last axis, in float32 whatever the precision of the input."""

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(**kwargs, dtype=tf.float32)
        self.epsilon = config.layer_norm_eps
        self._autocast = False  # `call` casts the input, and casts the output back.

    def build(self, input_shape: tf.TensorShape) -> None:
        width = input_shape[-1]
        self.gamma = self.add_weight("gamma", [width], initializer="ones")
        self.beta = self.add_weight("beta", [width], initializer="zeros")
        super().build(input_shape)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """float [..., width], in and out."""
        return layer_norm(x, self.gamma, self.beta, self.epsilon)
