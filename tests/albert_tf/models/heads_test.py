"""Heads against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.models.heads import MaskedLMHead, OutputHead
from tests.conformance_cases import global_policy

RNG = np.random.default_rng(0)
HIDDEN = RNG.normal(size=[2, 3, 16]).astype(np.float32)
TABLE = RNG.normal(size=[50, 8]).astype(np.float32)


def filled(head, name: str):
    """The head with variables, all random."""
    with tf.name_scope(name):
        head.build((None, None, 16))
    rng = np.random.default_rng(1)
    head.set_weights([rng.normal(size=w.shape) for w in head.get_weights()])
    return head


@pytest.fixture
def masked_lm(tiny_config) -> MaskedLMHead:
    return filled(MaskedLMHead(tiny_config.replace(hidden_act="tanh")), "masked_lm")


def expected_logits(head) -> np.ndarray:
    kernel, bias = head.transform.get_weights()
    x = np.tanh(HIDDEN @ kernel + bias)
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    x = normal * head.layer_norm.gamma.numpy() + head.layer_norm.beta.numpy()
    return x @ TABLE.T + head.output_bias.numpy()


def test_masked_language_model(masked_lm):
    logits = masked_lm(tf.constant(HIDDEN), tf.constant(TABLE))
    assert logits.dtype == tf.float32 and logits.shape == [2, 3, 50]
    np.testing.assert_allclose(logits, expected_logits(masked_lm), atol=1e-4)


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


def test_an_output_head(tiny_config):
    head = filled(OutputHead(tiny_config, 5), "classification")
    kernel, bias = head.logits.get_weights()
    assert [weight.name for weight in head.weights] == [
        "classification/logits/kernel:0",
        "classification/logits/bias:0",
    ]
    for hidden in (HIDDEN, HIDDEN[:, 0]):
        found = head(tf.constant(hidden), training=True)
        np.testing.assert_allclose(found, hidden @ kernel + bias, atol=1e-5)


def test_dropout_before_an_output_head(tiny_config):
    head = filled(OutputHead(tiny_config, 16, dropout_rate=0.5), "classification")
    head.set_weights([np.eye(16), np.zeros(16)])
    x, seed = tf.constant(HIDDEN), tf.constant([1, 2])
    dropped = head(x, training=True, seed=seed).numpy()
    np.testing.assert_array_equal(dropped, head(x, training=True, seed=seed))
    assert (dropped != head(x, training=True, seed=seed + 1).numpy()).any()
    assert 0.2 < (dropped == 0).mean() < 0.8
    np.testing.assert_allclose(dropped[dropped != 0], 2 * HIDDEN[dropped != 0], rtol=1e-6)
    np.testing.assert_array_equal(head(x, seed=seed), HIDDEN)
