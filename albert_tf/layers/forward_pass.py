"""Layout, bias and operations of one forward pass, the same for all layers."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from albert_tf.layers.blocks import Operations
from albert_tf.layers.packing import PaddedLayout

# Added to the logits of padding, as in the reference. exp(-10000) is exactly 0 in float32, so
# padding gets no weight. Not -inf: the softmax of a sequence of nothing but padding, such as one
# that fills up a batch, would be NaN, and so would the gradients of the whole batch, even if its
# loss has weight 0.
MASKED = -10000.0


class ForwardPass(NamedTuple):
    """The parts of a forward pass that all layers share."""

    operations: Operations  # What layers compute with.
    layout: PaddedLayout  # How the tokens' rows lie in memory.
    bias: tf.Tensor  # float32 [B, 1, 1, S], see `attention_bias`.
    training: bool = False  # Whether dropout is on.


def attention_bias(input_mask: tf.Tensor) -> tf.Tensor:
    """int32 [B, S], 1 for real tokens -> float32 [B, 1, 1, S], added to attention logits."""
    # It masks keys, for all queries alike: the outputs at padding are never read.
    # Not input_mask[:, None, None]: LiteRT lacks that operation in four dimensions.
    mask = tf.expand_dims(tf.expand_dims(input_mask, 1), 1)
    return (1.0 - tf.cast(mask, tf.float32)) * MASKED
