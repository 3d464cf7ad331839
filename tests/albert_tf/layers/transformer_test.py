"""The stack: which layer uses which weights, in which order, and what comes out of each."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.layers.blocks import Operations
from albert_tf.layers.forward_pass import ForwardPass, attention_bias
from albert_tf.layers.packing import PaddedLayout
from albert_tf.layers.transformer import SharedTransformer
from tests.conformance_cases import assert_equal

MASK = tf.constant([[1, 1, 1], [1, 1, 0]])
X = np.random.default_rng(0).normal(size=[6, 16]).astype(np.float32)


def make(config) -> SharedTransformer:
    stack = SharedTransformer(config, name="transformer")
    with tf.name_scope("transformer"):
        stack.build()
    rng = np.random.default_rng(1)
    stack.set_weights([0.3 * rng.normal(size=w.shape) for w in stack.get_weights()])
    return stack


def forward_pass(training=False) -> ForwardPass:
    return ForwardPass(Operations(), PaddedLayout(MASK), attention_bias(MASK), training)


def call(stack, training=False, seed=None) -> list[np.ndarray]:
    outputs = stack(tf.constant(X), forward_pass(training), None, seed)
    return [output.numpy() for output in outputs]


def by_hand(stack, blocks) -> list[np.ndarray]:
    """`x = norm(x + attention(x)); x = norm(x + feed_forward(x))` for pairs of block numbers."""
    x, outputs = tf.constant(X), []
    for attention, ffn in blocks:
        block = stack.attention_blocks[attention]
        x = block.layer_norm(x + block(x, block.read_weights(), forward_pass()))
        block = stack.ffn_blocks[ffn]
        x = block.layer_norm(x + block(x, block.read_weights(), forward_pass()))
        outputs.append(x.numpy())
    return outputs


# What is shared -> the blocks of attention and of the feed-forward network of each layer.
SHARING = {
    "all": ({}, [(0, 0), (0, 0), (0, 0), (0, 0)]),
    "groups": ({"num_hidden_groups": 2}, [(0, 0), (0, 0), (1, 1), (1, 1)]),
    "nothing": ({"parameter_sharing": "none"}, [(0, 0), (1, 1), (2, 2), (3, 3)]),
    "attention": ({"parameter_sharing": "attention"}, [(0, 0), (0, 1), (0, 2), (0, 3)]),
    "ffn": ({"parameter_sharing": "ffn"}, [(0, 0), (1, 0), (2, 0), (3, 0)]),
    "inner groups": (
        {"num_hidden_groups": 2, "inner_group_num": 2},
        [(0, 0), (1, 1), (0, 0), (1, 1), (2, 2), (3, 3), (2, 2), (3, 3)],
    ),
}


@pytest.mark.parametrize(("changes", "blocks"), SHARING.values(), ids=SHARING)
def test_layers_and_their_weights(tiny_config, changes, blocks):
    stack = make(tiny_config.replace(num_hidden_layers=4, **changes))
    assert len(stack.attention_blocks) == 1 + max(attention for attention, _ in blocks)
    assert len(stack.ffn_blocks) == 1 + max(ffn for _, ffn in blocks)
    found, expected = call(stack), by_hand(stack, blocks)
    assert len(found) == len(expected)
    assert_equal(found, expected, atol=1e-4)


def test_every_block_of_every_layer_has_a_seed_of_its_own(tiny_config, monkeypatch):
    stack, seeds = make(tiny_config), []
    for block in (*stack.attention_blocks, *stack.ffn_blocks):
        dropout = block.output_dropout

        def call_and_note(x, training, seed, dropout=dropout):
            seeds.append(tuple(seed.numpy()))
            return x

        monkeypatch.setattr(dropout, "call", call_and_note)
    call(stack, training=True, seed=tf.constant([1, 2]))
    assert len(seeds) == len(set(seeds)) == 4
