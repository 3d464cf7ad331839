"""Attention and its gradients against the plain formula, as ordinary operations."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.layers import operations
from albert_tf.layers.fast.attention import attend


@pytest.fixture(autouse=True)
def plain(fast_choice):
    """Nothing is compiled; pairs_test.py does that."""
    fast_choice("off")


def make_inputs(keys: int, queries: int = 3):
    rng = np.random.default_rng(keys)
    shapes = [2, 3, queries, 8], [2, 3, keys, 8], [2, 3, keys, 8]
    tensors = [tf.constant(rng.normal(size=shape), tf.float32) for shape in shapes]
    bias = np.zeros([2, 1, 1, keys], np.float32)
    bias[1, ..., -1] = -10000.0
    return tensors, tf.constant(bias), tf.constant(rng.normal(size=shapes[0]), tf.float32)


@pytest.mark.parametrize("keys", [16, 5])
def test_context_and_gradients(keys):
    inputs, bias, upstream = make_inputs(keys)
    results = []
    for function in (attend, operations.attend):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            context = function(*inputs, bias)
        results.append([context, *tape.gradient(context, inputs, upstream)])
    for found, expected in zip(*results):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    masked_key = results[0][2][1, :, -1]
    np.testing.assert_array_equal(masked_key, np.zeros([3, 8]))


def test_large_logits_do_not_overflow():
    (query, key, value), bias, _ = make_inputs(16)
    found = attend(1000 * query, key, value, bias)
    np.testing.assert_allclose(found, operations.attend(1000 * query, key, value, bias), atol=1e-5)
    assert np.isfinite(found).all()
