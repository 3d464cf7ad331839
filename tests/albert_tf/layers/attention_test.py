"""Self-attention against NumPy: heads, scaling, masks, positions, dropout."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.layers.attention import AttentionBlock
from albert_tf.layers.blocks import Operations
from albert_tf.layers.forward_pass import ForwardPass, attention_bias
from albert_tf.layers.packing import PackedLayout, PaddedLayout
from tests.conformance_cases import BASE

CONFIG = BASE.replace(hidden_size=12, num_attention_heads=3)
MASK = np.int32([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
X = np.random.default_rng(0).normal(size=[2, 5, 12]).astype(np.float32)
POSITIONS = tf.constant([[4, 0, 1], [2, 2, 0]])


def make(**changes: float) -> AttentionBlock:
    block = AttentionBlock(CONFIG.replace(**changes), name="attention")
    with tf.name_scope("attention"):
        block.build()
    rng = np.random.default_rng(1)
    block.set_weights([0.5 * rng.normal(size=w.shape) for w in block.get_weights()])
    return block


def call(block, packed=False, training=False, positions=None, seed=None) -> np.ndarray:
    mask = tf.constant(MASK)
    layout = PackedLayout(mask) if packed else PaddedLayout(mask)
    forward = ForwardPass(Operations(), layout, attention_bias(mask), training)
    rows = layout.to_rows(tf.constant(X))
    return block(rows, block.read_weights(), forward, positions, seed).numpy()


def expected(block) -> np.ndarray:
    """float [B, S, H], a head at a time."""
    query, key, value = (
        X @ layer.get_weights()[0] + layer.get_weights()[1]
        for layer in (block.query, block.key, block.value)
    )
    context = np.zeros_like(X)
    for head in range(3):
        part = slice(4 * head, 4 * head + 4)
        logits = query[..., part] @ key[..., part].transpose(0, 2, 1) / np.sqrt(4)
        scores = np.exp(logits) * MASK[:, None]
        context[..., part] = scores / scores.sum(-1, keepdims=True) @ value[..., part]
    kernel, bias = block.output_dense.get_weights()
    return context @ kernel + bias


@pytest.mark.parametrize("packed", [False, True])
def test_attention(packed):
    """At all positions, and at some."""
    block = make()
    whole, found = expected(block), call(block, packed)
    found = found if packed else found.reshape(2, 5, 12)[MASK > 0]
    np.testing.assert_allclose(found, whole[MASK > 0], atol=1e-5)
    some = np.take_along_axis(whole, POSITIONS.numpy()[..., None], axis=1).reshape(6, 12)
    np.testing.assert_allclose(call(block, packed, positions=POSITIONS), some, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "drops"),
    [
        ({}, False),
        ({"hidden_dropout_prob": 0.1}, True),
        ({"attention_probs_dropout_prob": 0.1}, True),
    ],
)
def test_whether_it_drops(changes, drops):
    assert make(**changes).drops is drops


def test_dropout_of_the_output():
    block, seed = make(hidden_dropout_prob=0.5), tf.constant([1, 2])
    whole, dropped = call(block), call(block, training=True, seed=seed)
    np.testing.assert_allclose(dropped[dropped != 0], 2 * whole[dropped != 0], rtol=1e-4)
    assert 0.2 < (dropped == 0).mean() < 0.8
    np.testing.assert_array_equal(call(block, seed=seed), whole)


def test_dropout_of_the_probabilities():
    """Values and output do nothing, so that each token's result is the sum of what is kept."""
    block, seed = make(attention_probs_dropout_prob=0.5), tf.constant([1, 2])
    block.value.set_weights([np.zeros([12, 12]), np.ones(12)])
    block.output_dense.set_weights([np.eye(12), np.zeros(12)])
    np.testing.assert_allclose(call(block, seed=seed), np.ones([10, 12]), rtol=1e-5)
    dropped = call(block, training=True, seed=seed)
    assert np.abs(dropped - 1).max() > 0.1 and dropped.min() >= 0
    np.testing.assert_allclose(dropped[:, ::4], dropped[:, 3::4])  # One mask a head.
    assert len(np.unique(dropped.round(4))) > 10


def test_both_dropouts_have_seeds_of_their_own():
    """With one seed for both, the masks of equal shape would be equal."""
    both = make(hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5)
    one = make(hidden_dropout_prob=0.5)
    seed = tf.constant([1, 2])
    zeros = [call(block, training=True, seed=seed) == 0 for block in (both, one)]
    np.testing.assert_array_equal(zeros[0], zeros[1])
