"""The plain formulas of layers against NumPy and written-down values."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import config
from albert_tf.keras_compat import keras
from albert_tf.layers import operations
from albert_tf.layers.blocks import Operations
from albert_tf.layers.operations import DenseWeights, fold_in

RNG = np.random.default_rng(0)
X = RNG.normal(size=[4, 3]).astype(np.float32)
KERNEL = RNG.normal(size=[3, 5]).astype(np.float32)
BIAS = RNG.normal(size=[5]).astype(np.float32)


def test_a_seed_for_each_consumer():
    seed = tf.constant([1, 2], tf.int32)
    seeds = [tuple(fold_in(seed, index).numpy()) for index in (0, 1, 1)]
    assert seeds[0] != seeds[1] == seeds[2]
    assert fold_in(None, 3) is None


def test_weights_of_a_dense_layer():
    layer = keras.layers.Dense(5)
    layer.build([None, 3])
    layer.set_weights([KERNEL, BIAS])
    weights = DenseWeights.of(layer)
    np.testing.assert_array_equal(weights.kernel, KERNEL)
    np.testing.assert_array_equal(weights.bias, BIAS)
    assert not isinstance(weights.kernel, tf.Variable)
    np.testing.assert_allclose(operations.dense(X, *weights), X @ KERNEL + BIAS, atol=1e-6)
    np.testing.assert_allclose(Operations().dense(X, weights), X @ KERNEL + BIAS, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_gradient_of_a_bias_counts_every_row(dtype):
    upstream = tf.cast(0.1 * RNG.normal(size=[8192, 5]) + 0.03, dtype)
    bias = tf.constant(BIAS.astype(np.float16), dtype)
    with tf.GradientTape() as tape:
        tape.watch(bias)
        y = operations.add_bias(tf.zeros([8192, 5], dtype), bias)
    np.testing.assert_array_equal(y[17], bias)
    gradient = tf.cast(tape.gradient(y, bias, upstream), tf.float32)
    expected = np.asarray(tf.cast(upstream, tf.float32)).sum(axis=0)
    np.testing.assert_allclose(gradient, expected, rtol=2**-8)  # Rounded once.


def test_weights_for_the_first_outputs_and_for_the_others():
    first, other = DenseWeights(tf.constant(KERNEL), tf.constant(BIAS)).split(2)
    np.testing.assert_array_equal(first.kernel, KERNEL[:, :2])
    np.testing.assert_array_equal(first.bias, BIAS[:2])
    np.testing.assert_array_equal(other.kernel, KERNEL[:, 2:])
    np.testing.assert_array_equal(other.bias, BIAS[2:])


def phi(x: float) -> float:
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


@pytest.mark.parametrize("x", [-3.0, -0.5, 0.0, 1.0, 2.0])
def test_activations(x):
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    expected = {
        "gelu": 0.5 * x * (1 + math.tanh(inner)),
        "gelu_erf": x * phi(x),
        "relu": max(x, 0.0),
        "tanh": math.tanh(x),
        "linear": x,
    }
    found = {name: float(Operations().activation(name)(tf.constant(x))) for name in expected}
    assert found == pytest.approx(expected, abs=1e-6)
    assert set(expected) == set(operations.ACTIVATIONS) == set(config.ACTIVATIONS)


def test_layer_norm():
    gamma, beta = np.float32([1.0, 2.0, 0.5]), np.float32([0.0, -1.0, 3.0])
    mean, variance = X.mean(-1, keepdims=True), X.var(-1, keepdims=True)
    expected = (X - mean) / np.sqrt(variance + 0.1) * gamma + beta
    np.testing.assert_allclose(operations.layer_norm(X, gamma, beta, 0.1), expected, atol=1e-6)
    norm = SimpleNamespace(gamma=gamma, beta=beta, epsilon=0.1)
    np.testing.assert_allclose(Operations().layer_norm(X, norm), expected, atol=1e-6)


def test_layer_norm_is_computed_in_float32_whatever_comes_in():
    """256 and 258: in bfloat16 their mean, 257, does not exist."""
    x = tf.constant([[256.0, 258.0]], tf.bfloat16)
    found = operations.layer_norm(x, tf.ones([2]), tf.zeros([2]), 1e-12)
    assert found.dtype == tf.bfloat16
    np.testing.assert_array_equal(tf.cast(found, tf.float32), [[-1.0, 1.0]])


def attention_inputs():
    """Queries [2, 3, 4, 5], keys and values [2, 3, 6, 5], of which one key each is masked."""
    query = RNG.normal(size=[2, 3, 4, 5]).astype(np.float32)
    key, value = RNG.normal(size=[2, 2, 3, 6, 5]).astype(np.float32)
    bias = np.zeros([2, 1, 1, 6], np.float32)
    bias[0, ..., 5] = bias[1, ..., 0] = -10000.0
    return query, key, value, bias


def test_attend():
    query, key, value, bias = attention_inputs()
    scores = np.exp(np.einsum("bnqd,bnsd->bnqs", query, key) + bias)
    probs = scores / scores.sum(-1, keepdims=True)
    expected = np.einsum("bnqs,bnsd->bnqd", probs, value)
    np.testing.assert_allclose(Operations.attend(query, key, value, bias), expected, atol=1e-5)
    assert probs[0, ..., 5].max() == 0.0
    halved = operations.attend(query, key, value, bias, lambda probs: 0.5 * probs)
    np.testing.assert_allclose(halved, 0.5 * expected, atol=1e-5)


def test_attend_takes_the_softmax_in_float32():
    """Logits of 256 and 257 are both 256 in bfloat16; the bias tells them apart all the same."""
    query, key = tf.ones([1, 1, 1, 1], tf.bfloat16), tf.fill([1, 1, 2, 1], 256.0)
    value = tf.constant([[[[0.0], [1.0]]]], tf.bfloat16)
    bias = tf.constant([[[[0.0, 1.0]]]])
    found = operations.attend(query, tf.cast(key, tf.bfloat16), value, bias)
    assert found.dtype == tf.bfloat16
    assert float(found[0, 0, 0, 0]) == pytest.approx(math.e / (1 + math.e), abs=4e-3)
