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
    """Keras's dense layer, but for its bias in bfloat16, whose gradient is exact: `add_bias`."""

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
    # Called by hand, since variables have to exist, under these names, before a first call: weights
    # are loaded into a model that has not computed anything.
    for layer in layers:
        with tf.name_scope(layer.name):
            layer.build(tf.TensorShape([None, width]))


class SizedLayer(keras.layers.Layer):
    """A layer that knows how wide its output is, which `summary()` shows."""

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

    # So a resumed run draws the masks that it would have drawn, and a block that is computed again
    # for its gradient drops the same entries both times.

    def __init__(self, rate: float, **kwargs) -> None:
        super().__init__(**kwargs)
        self.rate = rate

    def call(self, x: tf.Tensor, training: bool = False, seed: Seed = None) -> tf.Tensor:
        """x, in training with dropout of probability `rate`."""
        if not training or self.rate == 0:
            return x
        if seed is None:  # As in `fit`, which draws for itself and promises no bits.
            return tf.nn.dropout(x, self.rate)
        return tf.nn.experimental.stateless_dropout(x, self.rate, seed)


class LayerNorm(keras.layers.Layer):
    """Layer normalization over the last axis, in float32 whatever the precision of the input."""

    def __init__(self, config: AlbertConfig, **kwargs) -> None:
        super().__init__(**kwargs, dtype=tf.float32)
        self.epsilon = config.layer_norm_eps
        self._autocast = False  # The input is cast here, and the output back to what came in.

    def build(self, input_shape: tf.TensorShape) -> None:
        width = input_shape[-1]
        self.gamma = self.add_weight("gamma", [width], initializer="ones")
        self.beta = self.add_weight("beta", [width], initializer="zeros")
        super().build(input_shape)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """float [..., width], in and out."""
        return layer_norm(x, self.gamma, self.beta, self.epsilon)
