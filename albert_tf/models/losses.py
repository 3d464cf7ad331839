"""Losses and metrics as ratios of two sums, so that batches, replicas and steps add up exactly."""

# The mean over a batch that is spread over replicas is not the mean of the replicas' means, since
# replicas may hold different numbers of masked positions: the mean of 6 / 3 and 4 / 1 is 3, but
# (6 + 4) / (3 + 1) is 2.5. So every metric is a `Ratio`: sums are added first, then divided.

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

# Added to the denominator of every mean, as the reference does for masked language modeling:
# sum(weights * cross_entropy) / (sum(weights) + 1e-5). A batch without any prediction thus has the
# loss 0, not NaN, which would spread to every weight.
EPSILON = 1e-5


class Ratio(NamedTuple):
    """A weighted mean that has not been divided yet; both sums are float32 scalars."""

    numerator: tf.Tensor
    denominator: tf.Tensor


def weighted_mean(values: tf.Tensor, weights: tf.Tensor) -> Ratio:
    """The mean of `values` under `weights`, both of one shape, as a Ratio."""
    weights = tf.cast(weights, tf.float32)
    return Ratio(tf.reduce_sum(tf.cast(values, tf.float32) * weights), tf.reduce_sum(weights))


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Cross-entropies in nats: logits [..., C], labels int32 [...] -> float32 [...]."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=tf.cast(logits, tf.float32)
    )


def correct(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Whether the largest logit is the label's; [..., C] and labels int32 [...] -> bool [...]."""
    return tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels)
