"""Blocks are read in order, for each use, and called with what was read."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import tensorflow as tf

from albert_tf.layers.blocks import Operations, ReadyBlock


class Block:
    """Stands for a block: counts how often its weights are read."""

    layer_norm = SimpleNamespace(gamma=tf.ones([2]), beta=tf.constant([1.0, 1.0]), epsilon=1e-12)

    def __init__(self, scale: float) -> None:
        self.scale, self.reads = scale, 0

    def read_weights(self) -> float:
        self.reads += 1
        return self.scale

    def __call__(self, x, weights, *arguments, seed):
        return x * weights + sum(arguments) + seed


def test_blocks_are_read_in_order_and_for_each_use():
    one, other = Block(2.0), Block(3.0)
    ready = Operations().read([one, other, one])
    assert [each.weights for each in ready] == [2.0, 3.0, 2.0]
    assert (one.reads, other.reads) == (2, 1)
    found = ready[1](tf.constant([1.0, 2.0]), 10.0, 20.0, seed=100.0)
    np.testing.assert_array_equal(found, [133.0, 136.0])
    np.testing.assert_allclose(ready[0].norm(tf.constant([1.0, 3.0])), [0.0, 2.0], atol=1e-6)
    assert isinstance(ready[0], ReadyBlock)
