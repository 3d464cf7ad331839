"""Chains, compiled or not, equal the plain formulas in values and gradients; few are compiled."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import losses
from albert_tf.layers import basic, kernels
from albert_tf.layers.attention import attend, attention_probs
from albert_tf.layers.packing import make_layout

WIDTH = 24
TOLERANCE = {tf.float32: 2e-6, tf.bfloat16: 0.04}
both_precisions = pytest.mark.parametrize("dtype", TOLERANCE, ids=lambda dtype: dtype.name)


@pytest.fixture(autouse=True, params=["on", "off"])
def mode(request, fast_choice):
    fast_choice(request.param)


def normal(*shape, seed=0):
    return tf.random.stateless_normal(shape, seed=[seed, 1])


def values_and_gradients(function, *inputs):
    """The result, and its gradients for a fixed upstream, in float32."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = function(*inputs)
    upstream = tf.cast(normal(*result.shape, seed=99), result.dtype)
    gradients = tape.gradient(result, inputs, upstream)
    return [tf.cast(each, tf.float32).numpy() for each in (result, *gradients)]


def assert_same(ours, plain, dtype):
    """Ours in `dtype` against the plain formula in float32, relative to the largest element."""
    for one, other in zip(ours, plain, strict=True):
        assert one.shape == other.shape
        assert np.abs(one - other).max() <= TOLERANCE[dtype] * max(1.0, np.abs(other).max())


def cast(tensors, dtype):
    return [tf.cast(each, dtype) for each in tensors]


@both_precisions
@pytest.mark.parametrize("recompute", [False, True])
def test_gelu(dtype, recompute):
    x = cast([normal(40, WIDTH) * 3], dtype)
    assert_same(
        values_and_gradients(functools.partial(kernels.gelu, recompute=recompute), *x),
        values_and_gradients(basic.gelu, *cast(x, tf.float32)),
        dtype,
    )


@both_precisions
@pytest.mark.parametrize("shape", [(7, WIDTH), (2, 3, WIDTH), (7, 5)])
@pytest.mark.parametrize("parts", [1, 2])
def test_norm_of_one_tensor_and_of_a_sum(dtype, shape, parts):
    x = cast([normal(*shape, seed=part) for part in range(parts)], dtype)
    weights = [1.0 + normal(shape[-1], seed=2), normal(shape[-1], seed=3)]

    def ours(gamma, beta, x, branch=None):
        return kernels.norm(x, branch, gamma, beta, 1e-12)

    def plain(gamma, beta, *x):
        return basic.layer_norm(sum(x), gamma, beta, 1e-12)

    assert_same(
        values_and_gradients(ours, *weights, *x),
        values_and_gradients(plain, *weights, *cast(x, tf.float32)),
        dtype,
    )


@both_precisions
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (2, 5), (16, 16)])
def test_attention(dtype, queries, keys):
    query = normal(2, 3, queries, 4)
    x = cast([query, normal(2, 3, keys, 4, seed=1), normal(2, 3, keys, 4, seed=2)], dtype)
    bias = np.zeros([2, 1, 1, keys], np.float32)
    bias[0, ..., -1] = bias[1, ..., 2] = -10000
    assert_same(
        values_and_gradients(lambda q, k, v: attend(q, k, v, bias), *x),
        values_and_gradients(
            lambda q, k, v: tf.matmul(attention_probs(q, k, bias), v), *cast(x, tf.float32)
        ),
        dtype,
    )


@both_precisions
@pytest.mark.parametrize("shape", [(6,), (2, 3)])
@pytest.mark.parametrize("classes", [48, 5])
def test_cross_entropy(dtype, shape, classes):
    products = cast([normal(*shape, classes) * 20], dtype)
    bias = normal(classes, seed=1)
    labels = tf.random.stateless_uniform(shape, [1, 2], maxval=classes, dtype=tf.int32)
    assert_same(
        values_and_gradients(
            lambda x, bias: kernels.cross_entropy(x, bias, labels), *products, bias
        ),
        values_and_gradients(
            lambda x, bias: losses.cross_entropy(x + bias, labels),
            *cast(products, tf.float32),
            bias,
        ),
        dtype,
    )


def test_correct():
    rng = np.random.default_rng(0)
    logits = tf.constant(rng.integers(0, 3, [50, 4, 16]), tf.bfloat16)  # Many are equal.
    bias = tf.constant(rng.integers(0, 2, [16]), tf.float32)
    labels = tf.constant(rng.integers(0, 16, [50, 4]), tf.int32)
    expected = losses.correct(tf.cast(logits, tf.float32) + bias, labels).numpy()
    assert 0 < expected.sum() < expected.size
    np.testing.assert_array_equal(kernels.correct(logits, bias, labels), expected)


@pytest.mark.parametrize("at_once", [1, 2, 4, 8, 9])
def test_gradients_of_shared_weights(at_once):
    weight = tf.ones([3])
    with tf.GradientTape() as tape:
        tape.watch(weight)
        uses = kernels.share([weight, {"other": 2 * weight}], 9, at_once)
        assert len(uses) == 9
        result = sum(4.0**i * (use[0] + use[1]["other"]) for i, use in enumerate(uses))
    assert tape.gradient(result, weight).numpy().tolist() == [3 * sum(4**i for i in range(9))] * 3


def test_gradients_of_shared_weights_are_added_in_float32():
    # In bfloat16, 256 + 1 is 256.
    weight = tf.ones([3], tf.bfloat16)
    with tf.GradientTape() as tape:
        tape.watch(weight)
        uses = kernels.share({"kernel": weight}, uses=9, at_once=9)
        factors = [256.0] + [1.0] * 8
        result = sum(use["kernel"] * tf.cast(f, tf.bfloat16) for use, f in zip(uses, factors))
    assert tape.gradient(result, weight).numpy().astype(float).tolist() == [264.0] * 3


def test_rows_in_training_come_in_few_numbers():
    mask = np.zeros([6, 40], np.int32)
    rows = set()
    for real in range(1, 240):
        mask.flat[:real] = 1
        layout = make_layout(tf.constant(mask), packed=True, training=True)
        places = layout.to_rows(tf.range(240)).numpy()
        assert set(range(real)) <= set(places)
        rows.add(len(places))
    assert rows == {64, 128, 192, 240}
