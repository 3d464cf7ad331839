"""What the layers of one forward pass share."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from albert_tf.layers.forward_pass import attention_bias


def test_the_bias_masks_padding_by_the_references_number():
    bias = attention_bias(tf.constant([[1, 1, 0], [1, 0, 0]]))
    assert bias.dtype == tf.float32 and bias.shape == [2, 1, 1, 3]
    np.testing.assert_array_equal(bias[:, 0, 0], [[0, 0, -10000], [0, -10000, -10000]])


def test_the_bias_is_a_number_in_float16():
    assert np.isfinite(np.float16(attention_bias(tf.zeros([1, 1], tf.int32))))
