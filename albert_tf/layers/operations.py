"""The formulas of the layers, in TensorFlow's own operations.

Shapes: B batch, S sequence, T tokens (B * S, or real ones only), H hidden, N heads, D = H / N.
"""

# Layers call them as methods of an `Operations` object (blocks.py), so that layers/fast can compute
# the same faster on CPUs. If a formula changes here, its twin there may have to change as well;
# fast/pairs_test.py compares them, values and gradients.

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import tensorflow as tf

from albert_tf.keras_compat import keras

# int32 [2] that determines all dropout masks of a computation; None draws fresh ones. Training
# derives it from the run's seed and the step number, so that a resumed run draws the same masks as
# an uninterrupted one; the state of TensorFlow's own generator would differ.
Seed: TypeAlias = "tf.Tensor | None"


def fold_in(seed: Seed, index: int) -> Seed:
    """A seed for the `index`-th consumer of `seed`; None stays None."""
    return None if seed is None else tf.random.experimental.stateless_fold_in(seed, index)


class DenseWeights(NamedTuple):
    """The weights of a dense layer as tensors: kernel float [in, out], bias float [out]."""

    kernel: tf.Tensor
    bias: tf.Tensor

    @classmethod
    def of(cls, layer: keras.layers.Dense) -> DenseWeights:
        """The current weights of a layer, in the precision of the computation."""
        return cls(tf.convert_to_tensor(layer.kernel), tf.convert_to_tensor(layer.bias))

    def split(self, at: int) -> tuple[DenseWeights, DenseWeights]:
        """Weights for the first `at` outputs, and for the others."""
        sizes = [at, self.bias.shape[0] - at]
        kernels, biases = tf.split(self.kernel, sizes, axis=1), tf.split(self.bias, sizes)
        return DenseWeights(kernels[0], biases[0]), DenseWeights(kernels[1], biases[1])


def add_bias(x: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """float [..., out] + [out]."""
    # Not by `bias_add` in bfloat16: on CPUs its gradient is summed row after row in bfloat16, and
    # was wrong by 13 to 51 % at 4,096 rows.
    return x + bias if x.dtype == tf.bfloat16 else tf.nn.bias_add(x, bias)


def dense(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """float [T, in], [in, out], [out] -> [T, out]."""
    return add_bias(tf.matmul(x, kernel), bias)


def gelu(x: tf.Tensor) -> tf.Tensor:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the reference's form in every version."""
    return tf.nn.gelu(x, approximate=True)


# By the names that `AlbertConfig.hidden_act` may have.
ACTIVATIONS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "gelu": gelu,
    "gelu_erf": tf.nn.gelu,  # With the normal distribution function: Hugging Face's "gelu".
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "linear": tf.identity,
}


def layer_norm(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
    """float [..., width], in and out in x's precision; gamma and beta float32 [width]."""
    # Half precision would round the sums over the width. The variance is the biased one, of
    # centered values: E[x^2] - E[x]^2 would cancel, which an epsilon of 1e-12 does not repair.
    x32 = tf.cast(x, tf.float32)
    centered = x32 - tf.reduce_mean(x32, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centered), axis=-1, keepdims=True)
    normal = centered * tf.math.rsqrt(variance + epsilon)
    return tf.cast(normal * gamma + beta, x.dtype)


def attention_probs(query: tf.Tensor, key: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Softmax(query key^T + bias), float [B, N, Q, S], of the arguments of `attend`."""
    # The paper's softmax(Q K^T / sqrt(D)); the queries are already scaled by 1 / sqrt(D).
    logits = tf.matmul(query, key, transpose_b=True)  # [B, N, Q, S]
    # In float32, because a sum over S in bfloat16, which has 8 bits, would lose its small terms;
    # the second matmul is in half precision again.
    return tf.cast(tf.nn.softmax(tf.cast(logits, tf.float32) + bias), query.dtype)


def attend(
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    bias: tf.Tensor,
    dropout: Callable[[tf.Tensor], tf.Tensor] | None = None,
) -> tf.Tensor:
    """Softmax(query key^T + bias) value, float [B, N, Q, D]. query [B, N, Q, D] is scaled by
    1 / sqrt(D); key, value [B, N, S, D]; bias float32 [B, 1, 1, S].
    """
    # Dropout of probabilities leaves rows that no longer sum to 1, here as in the reference.
    probs = attention_probs(query, key, bias)
    return tf.matmul(dropout(probs) if dropout else probs, value)
