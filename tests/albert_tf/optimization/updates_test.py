"""The updates against NumPy, written down from the papers."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.optimization.updates import AdamSettings, adam_update, trust_ratio

RATE, STEPS = 0.1, 4


def numpy_update(weights, gradient, m, v, step, settings, adapts):
    """Algorithm 2 of LAMB's paper (You et al., ICLR 2020), without its clipping of norms; with a
    ratio of 1 it is AdamW (Loshchilov & Hutter, ICLR 2019) with one rate for both terms.
    """
    m = settings.beta_1 * m + (1 - settings.beta_1) * gradient
    v = settings.beta_2 * v + (1 - settings.beta_2) * gradient**2
    m_hat, v_hat = m, v
    if settings.bias_correction:
        m_hat = m / (1 - settings.beta_1**step)
        v_hat = v / (1 - settings.beta_2**step)
    direction = m_hat / (np.sqrt(v_hat) + settings.epsilon) + settings.weight_decay * weights
    ratio = np.linalg.norm(weights) / np.linalg.norm(direction) if adapts else 1.0
    return weights - RATE * ratio * direction, m, v


@pytest.mark.parametrize("bias_correction", [False, True])
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
@pytest.mark.parametrize("adapts", [True, False])
def test_several_updates(adapts, weight_decay, bias_correction):
    rng = np.random.default_rng(0)
    settings = AdamSettings(0.8, 0.95, 1e-3, weight_decay, bias_correction)
    expected = [rng.normal(size=[3, 4]), np.zeros([3, 4]), np.zeros([3, 4])]
    found = [tf.constant(array) for array in expected]  # float64: no rounding hides a fault.
    for step in range(1, STEPS + 1):
        gradient = rng.normal(size=[3, 4])
        weights, m, v = found
        found = adam_update(weights, tf.constant(gradient), m, v, step, RATE, settings, adapts)
        weights, m, v = expected
        expected = numpy_update(weights, gradient, m, v, step, settings, adapts)
        for left, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-6)


def test_an_update_changes_nothing_that_it_was_given():
    arguments = [tf.Variable([0.5, -2.0]) for _ in range(4)]
    adam_update(*arguments, tf.constant(1), RATE, AdamSettings(), adapts=True)
    for argument in arguments:
        np.testing.assert_array_equal(argument, [0.5, -2.0])


def test_trust_ratio_is_one_where_a_norm_is_zero():
    zero, one = tf.zeros([3]), tf.ones([3])
    pairs = ((zero, one), (one, zero), (zero, zero), (2 * one, one), (one / 4, one / 8))
    assert [float(trust_ratio(*pair)) for pair in pairs] == [1.0, 1.0, 1.0, 2.0, 2.0]
