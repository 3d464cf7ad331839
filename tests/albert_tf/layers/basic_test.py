"""Dense layers, dropout by seed, and layer normalization."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.layers.basic import (
    Dense,
    LayerNorm,
    SeededDropout,
    build_children,
    dense_layer,
    initializer,
)

SEED = tf.constant([3, 4], tf.int32)


def test_kernels_are_truncated_normal(tiny_config):
    values = initializer(tiny_config.replace(initializer_range=0.5))([200, 200]).numpy()
    assert 0.95 < np.abs(values).max() <= 1.0
    assert values.std() == pytest.approx(0.88 * 0.5, rel=0.02)  # Less than 0.5, for being cut.
    assert abs(values.mean()) < 0.01


def test_a_dense_layer(tiny_config):
    layer = dense_layer(5, tiny_config, name="query")
    layer.build([None, 3])
    assert layer.kernel.shape == [3, 5] and layer.name == "query"
    assert 0 < np.abs(layer.kernel).max() < 0.05  # Two deviations of 0.02.
    np.testing.assert_array_equal(layer.bias, np.zeros(5))
    without = dense_layer(5, tiny_config, name="logits", use_bias=False)
    without.build([None, 3])
    assert without.bias is None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [[8192, 3], [64, 128, 3]])
def test_the_bias_of_a_dense_layer_has_an_exact_gradient(dtype, shape):
    layer = Dense(5, "tanh", dtype=dtype)
    x = tf.zeros(shape)
    with tf.GradientTape() as tape:
        y = layer(x)
    assert y.dtype == dtype and y.shape == [*shape[:-1], 5]
    gradient = tape.gradient(y, layer.bias)
    np.testing.assert_array_equal(tf.cast(gradient, tf.float32), np.full([5], 8192.0))
    np.testing.assert_allclose(
        tf.cast(layer(tf.ones(shape)), tf.float32)[0, ..., :],
        np.broadcast_to(np.tanh(np.asarray(tf.cast(layer.kernel, tf.float32)).sum(0)), y.shape[1:]),
        atol=0.01,
    )


def test_children_are_built_under_their_names(tiny_config):
    layers = [dense_layer(4, tiny_config, name="one"), dense_layer(2, tiny_config, name="two")]
    with tf.name_scope("block"):
        build_children(3, *layers)
    assert [layer.kernel.shape.as_list() for layer in layers] == [[3, 4], [3, 2]]
    assert [layer.kernel.name for layer in layers] == ["block/one/kernel:0", "block/two/kernel:0"]


def test_dropout_is_a_function_of_the_seed():
    dropout, x = SeededDropout(0.25), tf.ones([100, 40])
    first = dropout(x, training=True, seed=SEED).numpy()
    np.testing.assert_array_equal(first, dropout(x, training=True, seed=SEED))
    assert (first != dropout(x, training=True, seed=SEED + 1).numpy()).any()
    assert set(first.ravel().tolist()) == {0.0, np.float32(1 / 0.75).item()}
    assert (first == 0).mean() == pytest.approx(0.25, abs=0.03)


def test_without_a_seed_every_mask_is_another():
    dropout, x = SeededDropout(0.5), tf.ones([20, 20])
    one, other = (dropout(x, training=True).numpy() for _ in range(2))
    assert (one != other).any() and (one == 0).any()


@pytest.mark.parametrize(("rate", "training"), [(0.5, False), (0.0, True)])
def test_nothing_is_dropped(rate, training):
    x = tf.ones([20, 20])
    np.testing.assert_array_equal(SeededDropout(rate)(x, training=training, seed=SEED), x)
    np.testing.assert_array_equal(SeededDropout(rate)(x), x)  # Off unless asked for.


def test_a_norm_is_made_as_the_identity_of_normal_rows(tiny_config):
    norm = LayerNorm(tiny_config.replace(layer_norm_eps=0.25), name="layer_norm")
    norm.build(tf.TensorShape([None, 2]))
    np.testing.assert_array_equal(norm.gamma, [1, 1])
    np.testing.assert_array_equal(norm.beta, [0, 0])
    # Mean 3, variance 4.
    expected = [[-2 / np.sqrt(4.25), 2 / np.sqrt(4.25)]]
    np.testing.assert_allclose(norm(tf.constant([[1.0, 5.0]])), expected, rtol=1e-6)
    norm.set_weights([np.array([2.0, 1.0]), np.array([0.0, 1.0])])
    expected = [[-4 / np.sqrt(4.25), 1 + 2 / np.sqrt(4.25)]]
    np.testing.assert_allclose(norm(tf.constant([[1.0, 5.0]])), expected, rtol=1e-6)
