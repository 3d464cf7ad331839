"""How tokens lie in memory between the dense layers: the only file that knows.

Dense layers see tokens as rows, `[T, width]`; attention needs them by sequence, `[B, S, width]`.
"""

from __future__ import annotations

import tensorflow as tf


class PaddedLayout:
    """Every position is a row, padding included: T = B * S. Static shapes stay static."""

    def __init__(self, input_mask: tf.Tensor) -> None:
        """Args: input_mask: int32 [B, S], 1 for real tokens."""
        shape = tf.shape(input_mask)
        self._batch = input_mask.shape[0] or shape[0]
        self._sequence = input_mask.shape[1] or shape[1]

    def to_rows(self, padded: tf.Tensor) -> tf.Tensor:
        """[B, S, width] -> [T, width]."""
        return tf.reshape(padded, [-1, padded.shape[-1]])

    def to_padded(self, rows: tf.Tensor) -> tf.Tensor:
        """[T, width] -> [B, S, width]."""
        return tf.reshape(rows, [self._batch, self._sequence, rows.shape[-1]])
