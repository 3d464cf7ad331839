"""Attention of large logits against the plain formula; pairs_test.py compiles it."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from albert_tf.layers import operations
from albert_tf.layers.fast.attention import attend


def test_large_logits_do_not_overflow():
    rng, bias = np.random.default_rng(16), tf.zeros([2, 1, 1, 16])
    query, key, value = (
        tf.constant(rng.normal(size=[2, 3, length, 8]), tf.float32) for length in (3, 16, 16)
    )
    found = attend(1000 * query, key, value, bias)
    np.testing.assert_allclose(found, operations.attend(1000 * query, key, value, bias), atol=1e-5)
    assert np.isfinite(found).all()
