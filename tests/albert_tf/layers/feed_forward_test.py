"""Dropout of the feed-forward block; goldens hold what it computes."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from albert_tf.layers.blocks import Operations
from albert_tf.layers.feed_forward import FeedForwardBlock
from albert_tf.layers.forward_pass import ForwardPass

X = np.random.default_rng(0).normal(size=[5, 16]).astype(np.float32)


def make(config) -> FeedForwardBlock:
    block = FeedForwardBlock(config, name="ffn")
    with tf.name_scope("ffn"):
        block.build()
    rng = np.random.default_rng(1)
    block.set_weights([rng.normal(size=w.shape) for w in block.get_weights()])
    return block


def call(block, training=False, seed=None):
    forward = ForwardPass(Operations(), None, None, training)
    return block(tf.constant(X), block.read_weights(), forward, seed).numpy()


def test_dropout_of_the_output(tiny_config):
    block, seed = make(tiny_config.replace(hidden_dropout_prob=0.5)), tf.constant([1, 2])
    whole, dropped = call(block), call(block, True, seed)
    assert block.drops and not make(tiny_config).drops
    assert 0.2 < (dropped == 0).mean() < 0.8
    np.testing.assert_allclose(dropped[dropped != 0], 2 * whole[dropped != 0], rtol=1e-5)
    np.testing.assert_array_equal(call(block, False, seed), whole)
