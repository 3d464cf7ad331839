"""A dense layer and its three gradients, as matrix products."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import fast_switch
from albert_tf.layers.fast.dense import dense

RNG = np.random.default_rng(0)
X, KERNEL, BIAS, UPSTREAM = (
    RNG.normal(size=size).astype(np.float32) for size in ((4, 3), (3, 5), 5, (4, 5))
)


@pytest.mark.parametrize("on_cpu", [True, False])
def test_value_and_gradients(monkeypatch, on_cpu):
    monkeypatch.setattr(fast_switch, "suits_cpu", lambda: on_cpu)
    inputs = [*map(tf.constant, (X, KERNEL, BIAS))]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = dense(*inputs)
    np.testing.assert_allclose(y, X @ KERNEL + BIAS, atol=1e-6)
    d_x, d_kernel, d_bias = tape.gradient(y, inputs, tf.constant(UPSTREAM))
    np.testing.assert_allclose(d_x, UPSTREAM @ KERNEL.T, atol=1e-5)
    np.testing.assert_allclose(d_kernel, X.T @ UPSTREAM, atol=1e-5)
    np.testing.assert_allclose(d_bias, UPSTREAM.sum(0), atol=1e-5)


@pytest.mark.parametrize(("on_cpu", "expected"), [(True, 1), (False, 0)])
def test_the_gradient_of_the_input_is_one_of_a_batch_on_cpus(monkeypatch, on_cpu, expected):
    monkeypatch.setattr(fast_switch, "suits_cpu", lambda: on_cpu)

    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = dense(x, tf.constant(KERNEL), tf.constant(BIAS))
        return tape.gradient(y, x)

    nodes = gradient.get_concrete_function(tf.TensorSpec([4, 3])).graph.as_graph_def().node
    assert sum(node.op == "BatchMatMulV2" for node in nodes) == expected


def test_the_gradient_of_the_bias_is_summed_in_float32():
    """In bfloat16, 256 + 1 is 256."""
    x, kernel, bias = (tf.zeros(shape, tf.bfloat16) for shape in ([9, 3], [3, 2], [2]))
    with tf.GradientTape() as tape:
        tape.watch(bias)
        y = dense(x, kernel, bias)
    upstream = tf.constant([[256.0, 1.0], *[[1.0, 1.0]] * 8], tf.bfloat16)
    found = tape.gradient(y, bias, upstream)
    assert found.dtype == tf.bfloat16
    assert tf.cast(found, tf.float32).numpy().tolist() == [264.0, 9.0]
