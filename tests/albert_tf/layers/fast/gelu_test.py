"""GELU and its slope in half precision; what the gradient needs. pairs_test.py compiles it."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from albert_tf.layers.fast.gelu import gelu


def formula(x: float) -> float:
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def slope(x: float) -> float:
    return (formula(x + 1e-4) - formula(x - 1e-4)) / 2e-4


def test_half_precision_is_rounded_once_at_the_end():
    x = tf.constant([1.0, -2.0, 0.3], tf.bfloat16)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = gelu(x)
    gradient = tape.gradient(y, x)
    assert y.dtype == gradient.dtype == tf.bfloat16
    exact = [formula(float(value)) for value in x]
    np.testing.assert_array_equal(y, tf.cast(tf.constant(exact), tf.bfloat16))
    exact = [slope(float(value)) for value in x]
    np.testing.assert_array_equal(gradient, tf.cast(tf.constant(exact), tf.bfloat16))


def test_only_the_input_is_kept():
    """The gradient is a function of x and of what comes from above: nothing in it is y's."""

    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = gelu(x)
        return tape.gradient(y, x)

    graph = gradient.get_concrete_function(tf.TensorSpec([3])).graph
    tanhs = [node for node in graph.as_graph_def().node if node.op == "Tanh"]
    assert len(tanhs) == 2  # Of the value, and again of the slope.
