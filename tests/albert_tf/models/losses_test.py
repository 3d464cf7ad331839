"""Ratios, cross-entropies and hits, by NumPy."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from albert_tf.models.losses import EPSILON, correct, cross_entropy, weighted_mean

LOGITS = tf.constant([[[1.0, 2.0, 0.5], [3.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [-1.0, 1.0, 4.0]]])
LABELS = tf.constant([[1, 2], [0, 2]])


def test_the_references_guard():
    assert EPSILON == 1e-5


def test_a_weighted_mean_is_two_sums():
    ratio = weighted_mean(tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[1, 0], [2, 1]]))
    assert (float(ratio.numerator), float(ratio.denominator)) == (11.0, 4.0)
    assert ratio.numerator.dtype == ratio.denominator.dtype == tf.float32


def test_sums_of_half_precision_are_float32():
    ratio = weighted_mean(tf.ones([300], tf.bfloat16), tf.ones([300], tf.bfloat16))
    assert (float(ratio.numerator), float(ratio.denominator)) == (300.0, 300.0)


def test_cross_entropy_is_in_nats():
    probs = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
    expected = -np.log(np.take_along_axis(probs, LABELS.numpy()[..., None], -1)[..., 0])
    found = cross_entropy(LOGITS, LABELS)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert float(found[1, 0]) == np.float32(np.log(3.0))


def test_cross_entropy_of_half_precision_is_float32():
    found = cross_entropy(tf.cast(LOGITS, tf.bfloat16), LABELS)
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, cross_entropy(LOGITS, LABELS), rtol=1e-6)


def test_hits():
    np.testing.assert_array_equal(correct(LOGITS, LABELS), [[True, False], [True, True]])
    assert correct(LOGITS, tf.cast(LABELS, tf.int64)).dtype == tf.bool
