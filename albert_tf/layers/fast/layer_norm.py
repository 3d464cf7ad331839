"""Layer normalization and its gradient in one pass each."""

# Without this, a training step of 8x128 in bfloat16 takes 1.09 times as long and 1.20 times the
# memory; in float32 as long, and 1.07 times the memory (docs/benchmarks/notes.md).

from __future__ import annotations

import tensorflow as tf

from albert_tf.layers.fast.compiled import compiled, once_in_graph


def layer_norm(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
    """`operations.layer_norm`, with a custom gradient."""

    # The gradient keeps x and two numbers per row. The plain formula's gradient keeps several
    # tensors of x's size, in float32, and takes a pass over memory for each of its operations.
    @tf.custom_gradient
    def normalize(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor):
        y, mean, inverse = _norm(x, gamma, beta, epsilon)

        return y, lambda upstream: _gradient(upstream, x, mean, inverse, gamma)

    return normalize(x, tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta))


@compiled
def _norm(
    x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The normalized x, and mean and inverse deviation of each row, float32 [..., 1]."""
    x32 = tf.cast(x, tf.float32)
    mean = _mean(x32)
    variance = _mean(tf.square(x32 - mean))
    inverse = tf.math.rsqrt(variance + epsilon)
    return tf.cast((x32 - mean) * inverse * gamma + beta, x.dtype), mean, inverse


@once_in_graph
def _gradient(
    upstream: tf.Tensor, x: tf.Tensor, mean: tf.Tensor, inverse: tf.Tensor, gamma: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Gradients of x, gamma and beta."""
    # The latter two are sums over all rows, which XLA would compute on one core of a CPU, so they
    # are outside the compiled part. They are summed in float32, whatever the precision.
    d_x, product = _norm_gradient(upstream, x, mean, inverse, gamma)
    rows = range(x.shape.rank - 1)
    return d_x, *(tf.reduce_sum(tf.cast(each, tf.float32), rows) for each in (product, upstream))


@compiled
def _norm_gradient(
    upstream: tf.Tensor, x: tf.Tensor, mean: tf.Tensor, inverse: tf.Tensor, gamma: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Gradient of x, and upstream times the normalized x, whose sum is the gradient of gamma."""
    normal = (tf.cast(x, tf.float32) - mean) * inverse
    upstream = tf.cast(upstream, tf.float32)
    d_normal = upstream * gamma
    d_x = (d_normal - (_mean(d_normal) + normal * _mean(d_normal * normal))) * inverse
    return tf.cast(d_x, x.dtype), tf.cast(upstream * normal, x.dtype)


def _mean(x: tf.Tensor) -> tf.Tensor:
    """Over rows: [..., width] -> [..., 1]."""
    return tf.reduce_mean(x, axis=-1, keepdims=True)
