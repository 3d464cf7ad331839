"""Small parts of every block: initialiser, activation, seeded dropout, layer normalization.

Shapes: B batch, S sequence, T tokens (B * S), E embedding, H hidden, N heads, D = H / N,
F feed-forward.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.layers import fast, kernels


def initializer(config: AlbertConfig) -> keras.initializers.Initializer:
    """Truncated normal, cut at two standard deviations: every kernel and table of the reference."""
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


def gelu(x: tf.Tensor) -> tf.Tensor:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): the reference uses this form for every
    version.
    """
    return tf.nn.gelu(x, approximate=True)


def gelu_erf(x: tf.Tensor) -> tf.Tensor:
    """x times the normal distribution function at x: what Hugging Face calls "gelu"."""
    return tf.nn.gelu(x, approximate=False)


_ACTIVATIONS = {
    "gelu": gelu,
    "gelu_erf": gelu_erf,
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "linear": tf.identity,
}


def activation(
    name: str, training: bool = False, recompute: bool = False
) -> Callable[[tf.Tensor], tf.Tensor]:
    """The function that `AlbertConfig.hidden_act` names.

    Args:
      training: prefer the form whose gradient is cheap to the one that is fused into a matmul.
      recompute: prefer less memory to less time.
    """
    if training and name == "gelu":
        return functools.partial(kernels.gelu, recompute=recompute)
    return _ACTIVATIONS[name]


def dense(units: int, config: AlbertConfig, name: str, use_bias: bool = True) -> keras.layers.Dense:
    """A dense layer with the configuration's initialiser."""
    return keras.layers.Dense(
        units, use_bias=use_bias, kernel_initializer=initializer(config), name=name
    )


def build_children(*layers_and_widths: tuple[keras.layers.Layer, int]) -> None:
    """Builds each layer for inputs of the given width, its variables named after the layer."""
    for layer, width in layers_and_widths:
        with tf.name_scope(layer.name):
            layer.build(tf.TensorShape([None, width]))


def fold_in(seed: tf.Tensor | None, index: int) -> tf.Tensor | None:
    """A seed for the `index`-th consumer of `seed` (int32 [2]); None stays None."""
    return None if seed is None else tf.random.experimental.stateless_fold_in(seed, index)


class SeededDropout(keras.layers.Layer):
    """Dropout whose mask is a function of a seed, so that an interrupted training run can be
    repeated exactly.
    """

    def __init__(self, rate: float, **kwargs) -> None:
        super().__init__(**kwargs)
        self.rate = rate

    def call(
        self, x: tf.Tensor, training: bool = False, seed: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Drops with probability `rate` in training; without a seed (int32 [2]) the mask is a fresh
        random one.
        """
        if not training or self.rate == 0:
            return x
        if seed is None:
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

    def call(
        self, x: tf.Tensor, branch: tf.Tensor | None = None, training: bool = False
    ) -> tf.Tensor:
        """The norm of x, or of x + branch; all float [..., width].

        Args:
          training: prefer the form whose gradient is cheap.
        """
        if training:
            return kernels.norm(x, branch, self.gamma, self.beta, self.epsilon)
        total = x if branch is None else x + branch
        return layer_norm(total, self.gamma, self.beta, self.epsilon)


def layer_norm(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
    """x: float [..., width]; gamma, beta: float32 [width]; the result has x's precision."""
    x32 = tf.cast(x, tf.float32)
    centred = x32 - tf.reduce_mean(x32, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
    normal = centred * tf.math.rsqrt(variance + epsilon)
    return tf.cast(normal * gamma + beta, x.dtype)


class Affine(NamedTuple):
    """The weights of a dense layer as tensors, read and cast once however often they are used."""

    kernel: tf.Tensor
    bias: tf.Tensor

    @classmethod
    def of(cls, layer: keras.layers.Dense) -> Affine:
        """The current weights of a layer, in the precision of the computation."""
        return cls(tf.convert_to_tensor(layer.kernel), tf.convert_to_tensor(layer.bias))

    def split(self, at: int) -> tuple[Affine, Affine]:
        """One for the first `at` outputs, and one for the others."""
        sizes = [at, self.bias.shape[0] - at]
        first_kernel, other_kernel = tf.split(self.kernel, sizes, axis=1)
        first_bias, other_bias = tf.split(self.bias, sizes)
        return Affine(first_kernel, first_bias), Affine(other_kernel, other_bias)

    def __call__(self, rows: tf.Tensor, training: bool = False) -> tf.Tensor:
        """float [T, in] -> float [T, out].

        Args:
          training: prepare for a faster gradient than TensorFlow's own.
        """
        if training:
            return _affine(rows, self.kernel, self.bias)
        return tf.nn.bias_add(tf.matmul(rows, self.kernel), self.bias)


def _product_with_transposed(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """[T, a], [b, a] -> [T, b]; in the fast form as one of a batch, oneDNN's faster product."""
    if not fast.is_on():
        return tf.matmul(x, y, transpose_b=True)
    batch = tf.matmul(tf.expand_dims(x, 0), tf.expand_dims(y, 0), transpose_b=True)
    return tf.squeeze(batch, 0)


@tf.custom_gradient
def _affine(rows: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor):
    def gradient(upstream):
        return (
            _product_with_transposed(upstream, kernel),
            tf.matmul(rows, upstream, transpose_a=True),
            kernels.sum_rows(upstream),
        )

    return tf.nn.bias_add(tf.matmul(rows, kernel), bias), gradient
