"""What training does in one pass over memory, forward and backward, instead of one an operation.

A dense layer runs at the speed of the processor; what stands between dense layers runs at the speed
of memory, and in TensorFlow every addition is a pass over it. Here such chains are compiled by XLA,
and gradients keep no more than they need. Formulas equal those of `basic`, up to rounding. Where
the fast form is off (`fast`), they are ordinary operations.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from albert_tf.layers import fast
from albert_tf.layers.functions import once_in_graph


def one_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function of tensors with XLA where the fast form is on.

    It is compiled again for every new shape, a tenth of a second each time: for training only,
    where `packing.make_layout` keeps the shapes few.
    """
    compiled = tf.function(function, jit_compile=True, autograph=False)

    @functools.wraps(function)
    def kernel(*arguments: Any) -> Any:
        return compiled(*arguments) if fast.is_on() else function(*arguments)

    return kernel


def gelu(x: tf.Tensor, recompute: bool = False) -> tf.Tensor:
    """`basic.gelu` of x, float [...], keeping one tensor for the gradient: its slope, or x.

    Args:
      recompute: keep x and compute the slope from it later, which takes less memory: of two results
        at once XLA writes the common part, `gate`, to memory in float32. For float32 x that is done
        anyway, being faster.
    """
    return _gelu_keeping_x(x) if recompute or x.dtype == tf.float32 else _gelu_keeping_slope(x)


@tf.custom_gradient
def _gelu_keeping_x(x: tf.Tensor):
    return _gelu(x), lambda upstream: _gelu_gradient(x, upstream)


@tf.custom_gradient
def _gelu_keeping_slope(x: tf.Tensor):
    y, slope = _gelu_and_slope(x)
    return y, lambda upstream: upstream * slope


@one_kernel
def _gelu(x: tf.Tensor) -> tf.Tensor:
    return tf.cast(_gelu_and_slope32(x)[0], x.dtype)


@one_kernel
def _gelu_gradient(x: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.cast(upstream, tf.float32) * _gelu_and_slope32(x)[1], x.dtype)


@one_kernel
def _gelu_and_slope(x: tf.Tensor) -> tuple[tf.Tensor, ...]:
    return tuple(tf.cast(each, x.dtype) for each in _gelu_and_slope32(x))


# GELU is x sigmoid(2 x (A x^2 + B)); XLA computes tanh faster than the sigmoid itself.
_GELU_B = math.sqrt(2.0 / math.pi)
_GELU_A = 0.044715 * _GELU_B


def _gelu_and_slope32(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """[...] -> GELU and its slope, float32 [...]; in a kernel."""
    x = tf.cast(x, tf.float32)
    factor = x * x * _GELU_A + _GELU_B
    gate = 0.5 + 0.5 * tf.tanh(x * factor)
    slope = gate + gate * (1.0 - gate) * x * (6.0 * factor - 4.0 * _GELU_B)
    return x * gate, slope


def norm(
    x: tf.Tensor, branch: tf.Tensor | None, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float
) -> tf.Tensor:
    """`basic.layer_norm` of x, or of x + branch, keeping the sum and two figures a row for the
    gradient.

    x, branch: float [..., width]; gamma, beta: float32 [width]; the result has x's precision.
    """

    @tf.custom_gradient
    def normalise(gamma: tf.Tensor, beta: tf.Tensor, *parts: tf.Tensor):
        y, mean, inverse, total = _norm(gamma, beta, epsilon, *parts)
        total = parts[0] if total is None else total

        def gradient(upstream: tf.Tensor):
            d_total, product = _norm_gradient(upstream, total, mean, inverse, gamma)
            sums = [tf.cast(sum_rows(each), tf.float32) for each in (product, upstream)]
            return *sums, *(d_total for _ in parts)

        return y, gradient

    parts = [x] if branch is None else [x, branch]
    return normalise(tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta), *parts)


@one_kernel
def _norm(
    gamma: tf.Tensor, beta: tf.Tensor, epsilon: float, *parts: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor | None]:
    """The norm, mean and inverse deviation; the sum if there are several parts."""
    x = functools.reduce(tf.add, parts)
    x32 = tf.cast(x, tf.float32)
    mean = _row_mean(x32)
    variance = _row_mean(tf.square(x32 - mean))
    inverse = tf.math.rsqrt(variance + epsilon)
    y = tf.cast((x32 - mean) * inverse * gamma + beta, x.dtype)
    return y, mean, inverse, x if len(parts) > 1 else None


@tf.custom_gradient
def add(x: tf.Tensor, y: tf.Tensor):
    """x + y of equal shapes, whose gradient does not ask for the shapes."""
    return x + y, lambda upstream: (upstream, upstream)


@one_kernel
def _norm_gradient(
    upstream: tf.Tensor, x: tf.Tensor, mean: tf.Tensor, inverse: tf.Tensor, gamma: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    normal = (tf.cast(x, tf.float32) - mean) * inverse
    upstream = tf.cast(upstream, tf.float32)
    d_normal = upstream * gamma
    d_x = (d_normal - (_row_mean(d_normal) + normal * _row_mean(d_normal * normal))) * inverse
    return tf.cast(d_x, x.dtype), tf.cast(upstream * normal, x.dtype)


def masked_softmax(logits: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Softmax over keys of logits [B, N, Q, S] plus bias float32 [B, 1, 1, S], in float32.

    Where rows cannot be folded, TensorFlow's own softmax is the faster one.
    """
    if _folds(logits):
        return _masked_softmax(logits, bias)
    return tf.cast(tf.nn.softmax(tf.cast(logits, tf.float32) + bias), logits.dtype)


@one_kernel
def _masked_softmax(logits: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    x = tf.cast(logits, tf.float32) + bias
    exponentials = tf.exp(x - _row_max(x))
    return tf.cast(exponentials / _row_sum(exponentials), logits.dtype)


@one_kernel
def softmax_gradient(
    probs: tf.Tensor, d_probs: tf.Tensor, context: tf.Tensor, d_context: tf.Tensor
) -> tf.Tensor:
    """Gradient of attention logits; all but context [B, N, Q, D] and its gradient: [B, N, Q, S].

    It needs sum(probs * d_probs) over keys. That is sum(context * d_context) over D, a much smaller
    sum (FlashAttention, Dao et al. 2022, appendix B.2).
    """
    product = tf.cast(d_context, tf.float32) * tf.cast(context, tf.float32)
    d_logits = tf.cast(probs, tf.float32) * (tf.cast(d_probs, tf.float32) - _row_sum(product))
    return tf.cast(d_logits, probs.dtype)


@tf.custom_gradient
def cross_entropy(products: tf.Tensor, bias: tf.Tensor, labels: tf.Tensor):
    """`losses.cross_entropy` of the logits products + bias, which never are in memory as float32.

    products: float [..., C]; bias: float32 [C]; labels: int32 [...], not checked; returns
    float32 [...].
    """
    loss, log_sum = _cross_entropy(products, bias, labels)

    def gradient(upstream: tf.Tensor):
        d_logits = _d_cross_entropy(products, bias, labels, log_sum, upstream)
        return d_logits, tf.cast(sum_rows(d_logits), tf.float32), None

    return loss, gradient


@one_kernel
def _cross_entropy(
    products: tf.Tensor, bias: tf.Tensor, labels: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    logits = tf.cast(products, tf.float32) + bias
    largest = _row_max(logits)
    log_sum = (tf.math.log(_row_sum(tf.exp(logits - largest))) + largest)[..., 0]
    return log_sum - _at_labels(logits, labels)[..., 0], log_sum


@one_kernel
def _d_cross_entropy(
    products: tf.Tensor, bias: tf.Tensor, labels: tf.Tensor, log_sum: tf.Tensor, upstream: tf.Tensor
) -> tf.Tensor:
    logits = tf.cast(products, tf.float32) + bias
    one_hot = tf.one_hot(labels, logits.shape[-1])
    d_logits = (tf.exp(logits - log_sum[..., None]) - one_hot) * upstream[..., None]
    return tf.cast(d_logits, products.dtype)


@one_kernel
def correct(products: tf.Tensor, bias: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """`losses.correct` of the logits products + bias, as `cross_entropy` takes them: bool [...].

    XLA finds a row's largest element faster than its place: no element may beat the label's, nor
    equal it before it.
    """
    logits = tf.cast(products, tf.float32) + bias
    at_label = _at_labels(logits, labels)
    before = tf.range(logits.shape[-1]) < labels[..., None]
    ahead = (logits > at_label) | ((logits == at_label) & before)
    return _row_max(tf.cast(ahead, tf.float32))[..., 0] == 0


def _at_labels(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """[..., C], [...] -> [..., 1]."""
    return tf.gather(logits, labels[..., None], batch_dims=labels.shape.rank)


def share(tensors: Any, uses: int, at_once: int) -> list[Any]:
    """Copies of a structure of tensors for several uses, whose gradients are added in float32.

    Args:
      uses: how many copies.
      at_once: so many gradients are added at a time, those of the last copies first, that few have
        to be kept.
    """

    def copies(tensor: tf.Tensor, number: int) -> list[tf.Tensor]:
        @tf.custom_gradient
        def copy(tensor: tf.Tensor):
            return [tensor] * number, lambda *gradients: _sum(*gradients)

        return copy(tensor) if number > 1 else [tensor]

    def shared(tensor: tf.Tensor) -> list[tf.Tensor]:
        ready = []
        while uses - len(ready) > at_once:
            *some, tensor = copies(tensor, at_once + 1)
            ready += some
        return ready + copies(tensor, uses - len(ready))

    flat = [shared(tensor) for tensor in tf.nest.flatten(tensors)]
    return [tf.nest.pack_sequence_as(tensors, use) for use in zip(*flat, strict=True)]


def _sum(*tensors: tf.Tensor) -> tf.Tensor:
    """In a kernel or a call, because TensorFlow would merge a chain of sums into one of all layers,
    for which it keeps them all.
    """
    return (_sum_in_kernel if fast.is_on() else _sum_in_call)(*tensors)


def _sum32(*tensors: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.add_n([tf.cast(each, tf.float32) for each in tensors]), tensors[0].dtype)


_sum_in_kernel, _sum_in_call = one_kernel(_sum32), once_in_graph(_sum32, inline=False)


def sum_rows(x: tf.Tensor) -> tf.Tensor:
    """[..., width] -> [width], summed in float32 in any precision.

    A CPU is fastest at it as a product with ones. On accelerators such a product would have less
    than float32's precision.
    """
    rows = tf.reshape(x, [-1, x.shape[-1]])
    if not fast.is_on():
        return tf.cast(tf.reduce_sum(tf.cast(rows, tf.float32), axis=0), x.dtype)
    return tf.squeeze(tf.matmul(tf.ones([1, tf.shape(rows)[0]], x.dtype), rows), 0)


def _row_sum(x: tf.Tensor) -> tf.Tensor:
    """[..., width] -> [..., 1]; in a kernel."""
    return tf.reduce_sum(_folded(x, tf.add), axis=-1, keepdims=True)


def _row_mean(x: tf.Tensor) -> tf.Tensor:
    return _row_sum(x) / tf.cast(tf.shape(x)[-1], x.dtype)


def _row_max(x: tf.Tensor) -> tf.Tensor:
    return tf.reduce_max(_folded(x, tf.maximum), axis=-1, keepdims=True)


def _folded(x: tf.Tensor, operation: Callable[..., tf.Tensor]) -> tf.Tensor:
    """An eighth of the columns, with the others folded onto them if their number allows it.

    XLA reduces a row on a CPU element by element, but adds pieces of rows with vector instructions.
    """
    return functools.reduce(operation, tf.split(x, 8, axis=-1)) if _folds(x) else x


def _folds(x: tf.Tensor) -> bool:
    return fast.is_on() and x.shape[-1] is not None and x.shape[-1] % 8 == 0
