"""Heads: precision and dropout; goldens hold what they compute."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from albert_tf.models.heads import MaskedLMHead, OutputHead
from tests.conformance_cases import global_policy

RNG = np.random.default_rng(0)
HIDDEN = RNG.normal(size=[2, 3, 16]).astype(np.float32)
TABLE = RNG.normal(size=[50, 8]).astype(np.float32)


def test_logits_and_their_bias_are_float32_in_mixed_precision(tiny_config):
    with global_policy("mixed_bfloat16"):
        head, output = MaskedLMHead(tiny_config), OutputHead(tiny_config, 2)
        head.build(None)
        bias = 1 + 2.0**-12 * np.arange(50)  # bfloat16 has no such numbers.
        head.output_bias.assign(bias)
        head.layer_norm.gamma.assign(np.zeros(8))
        logits = head(tf.constant(HIDDEN), tf.constant(TABLE))
        assert output(tf.constant(HIDDEN)).dtype == tf.float32
    assert logits.dtype == tf.float32
    np.testing.assert_array_equal(logits[0, 0], np.float32(bias))


def test_dropout_before_an_output_head(tiny_config):
    head = OutputHead(tiny_config, 16, dropout_rate=0.5)
    head.build((None, None, 16))
    head.set_weights([np.eye(16), np.zeros(16)])
    x, seed = tf.constant(HIDDEN), tf.constant([1, 2])
    dropped = head(x, training=True, seed=seed).numpy()
    assert 0.2 < (dropped == 0).mean() < 0.8
    np.testing.assert_allclose(dropped[dropped != 0], 2 * HIDDEN[dropped != 0], rtol=1e-6)
    np.testing.assert_array_equal(head(x, seed=seed), HIDDEN)
