"""Layer normalization and its gradient in closed form."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.layers.fast.layer_norm import layer_norm

RNG = np.random.default_rng(0)
GAMMA, BETA, UPSTREAM = (RNG.normal(size=size).astype(np.float32) for size in (8, 8, (2, 3, 8)))
X = RNG.normal(size=[2, 3, 8]).astype(np.float32)
EPSILON = 0.05


@pytest.fixture(autouse=True)
def plain(fast_choice):
    """As ordinary operations; pairs_test.py compiles it."""
    fast_choice("off")


def by_numpy() -> dict[str, np.ndarray]:
    """Value and gradients (Ba et al. 2016)."""
    deviation = np.sqrt(X.var(-1, keepdims=True) + EPSILON)
    normal = (X - X.mean(-1, keepdims=True)) / deviation
    d_normal = UPSTREAM * GAMMA
    means = d_normal.mean(-1, keepdims=True), (d_normal * normal).mean(-1, keepdims=True)
    return {
        "y": normal * GAMMA + BETA,
        "x": (d_normal - means[0] - normal * means[1]) / deviation,
        "gamma": (UPSTREAM * normal).sum((0, 1)),
        "beta": UPSTREAM.sum((0, 1)),
    }


def compute(x, gamma, beta):
    with tf.GradientTape() as tape:
        tape.watch([x, gamma, beta])
        y = layer_norm(x, gamma, beta, EPSILON)
    return y, tape.gradient(y, [x, gamma, beta], tf.cast(UPSTREAM, x.dtype))


def test_value_and_gradients():
    y, (d_x, d_gamma, d_beta) = compute(*map(tf.constant, (X, GAMMA, BETA)))
    expected = by_numpy()
    np.testing.assert_allclose(y, expected["y"], atol=1e-5)
    np.testing.assert_allclose(d_x, expected["x"], atol=1e-5)
    np.testing.assert_allclose(d_gamma, expected["gamma"], atol=1e-5)
    np.testing.assert_allclose(d_beta, expected["beta"], atol=1e-5)
