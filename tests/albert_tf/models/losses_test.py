"""Losses of half precision, and hits; objectives_test.py has losses worked out by hand."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from albert_tf.models.losses import correct, cross_entropy, weighted_mean

LOGITS = tf.constant([[[1.0, 2.0, 0.5], [3.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [-1.0, 1.0, 4.0]]])
LABELS = tf.constant([[1, 2], [0, 2]])


def test_sums_of_half_precision_are_float32():
    ratio = weighted_mean(tf.ones([300], tf.bfloat16), tf.ones([300], tf.bfloat16))
    assert (float(ratio.numerator), float(ratio.denominator)) == (300.0, 300.0)


def test_cross_entropy_of_half_precision_is_float32():
    found = cross_entropy(tf.cast(LOGITS, tf.bfloat16), LABELS)
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, cross_entropy(LOGITS, LABELS), rtol=1e-6)


def test_hits():
    found = correct(LOGITS, tf.cast(LABELS, tf.int64))
    np.testing.assert_array_equal(found, [[True, False], [True, True]])
