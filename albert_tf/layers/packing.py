"""How tokens lie in memory between the dense layers: the only file that knows.

Dense layers see tokens as rows, `[T, width]`; attention needs them by sequence, `[B, S, width]`.
A layout goes from one to the other. The padded one has a row for every position (T = B * S) and
static shapes, as TPUs and XLA need. The packed one has rows for real tokens only, so that no dense
layer works on padding; both give the same values and gradients at real tokens.
"""

from __future__ import annotations

import tensorflow as tf

from albert_tf.layers.operations import Operations
from albert_tf.targets import has_gpu, shapes_must_be_static


class PaddedLayout:
    """Every position is a row."""

    def __init__(self, input_mask: tf.Tensor) -> None:
        """Args: input_mask: int32 [B, S], 1 for real tokens."""
        shape = tf.shape(input_mask)
        self.batch = input_mask.shape[0] or shape[0]
        self.sequence = input_mask.shape[1] or shape[1]

    def to_rows(self, padded: tf.Tensor) -> tf.Tensor:
        """[B, S, ...] -> [T, ...]."""
        return tf.reshape(padded, tf.concat([[-1], tf.shape(padded)[2:]], axis=0))

    def to_padded(self, rows: tf.Tensor) -> tf.Tensor:
        """[T, width] -> [B, S, width]."""
        return tf.reshape(rows, [self.batch, self.sequence, rows.shape[-1]])

    def add_positions(self, rows: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
        """Adds to each row [T, E] the entry of `table` [positions, E] of its position."""
        return self.to_rows(self.to_padded(rows) + table[: self.sequence])

    def rows_at(self, rows: tf.Tensor, positions: tf.Tensor | None) -> tf.Tensor:
        """Rows [T, width] at some positions, int32 [B, P] -> [B * P, width]; None: all rows."""
        if positions is None:
            return rows
        starts = tf.range(self.batch)[:, None] * self.sequence  # [B, 1]
        return tf.gather(rows, tf.reshape(starts + positions, [-1]))


class PackedLayout:
    """Real tokens are rows, in the order of sequences and positions.

    The first position of a sequence with real tokens counts as real, since heads read it. What is
    no row is zero when it is asked for by position, and without gradient.
    """

    def __init__(self, input_mask: tf.Tensor, operations: Operations) -> None:
        """Rows for the real tokens of a batch.

        Args:
          input_mask: int32 [B, S], 1 for real tokens.
          operations: how rows are moved; and the number of rows is rounded up to a multiple of its
            `row_multiple`, or that of all positions, with the first few paddings.
        """
        self._operations = operations
        shape = tf.shape(input_mask)
        self.batch, self.sequence = shape[0], input_mask.shape[1] or shape[1]
        real = tf.not_equal(input_mask, 0)
        first = tf.equal(tf.range(self.sequence), 0) & tf.reduce_any(real, axis=1, keepdims=True)
        flat = tf.reshape(real | first, [-1])  # [B * S]
        if operations.row_multiple > 1:
            missing = -tf.reduce_sum(tf.cast(flat, tf.int32)) % operations.row_multiple
            flat |= tf.cumsum(tf.cast(~flat, tf.int32)) <= missing
        self._places = tf.where(flat)  # [T, 1] int64: row -> position among B * S.
        # Position among B * S -> row; padding points behind the last row.
        counts = tf.cumsum(tf.cast(flat, tf.int32)) - 1
        self._row_of = tf.where(flat, counts, tf.shape(self._places)[0])

    def to_rows(self, padded: tf.Tensor) -> tf.Tensor:
        """[B, S, ...] -> [T, ...]."""
        flat = tf.reshape(padded, tf.concat([[-1], tf.shape(padded)[2:]], axis=0))
        return self._operations.take_rows(flat, self._places)

    def to_padded(self, rows: tf.Tensor) -> tf.Tensor:
        """[T, width] -> [B, S, width], zero at padding."""
        width = rows.shape[-1]
        padded = self._operations.put_rows(rows, self._places, self.batch * self.sequence)
        return tf.reshape(padded, [self.batch, self.sequence, width])

    def add_positions(self, rows: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
        """Adds to each row [T, E] the entry of `table` [positions, E] of its position."""
        positions = tf.cast(self._places[:, 0], tf.int32) % self.sequence  # [T]
        return rows + tf.gather(table[: self.sequence], positions)

    def rows_at(self, rows: tf.Tensor, positions: tf.Tensor | None) -> tf.Tensor:
        """As in PaddedLayout; rows at padding are zero."""
        if positions is None:
            return rows
        places = tf.reshape(tf.range(self.batch)[:, None] * self.sequence + positions, [-1])
        with_zero = tf.pad(rows, [[0, 1], [0, 0]])  # Row T is what padding holds.
        return tf.gather(with_zero, tf.gather(self._row_of, places))


def make_layout(
    input_mask: tf.Tensor, operations: Operations, packed: bool | None = None
) -> PaddedLayout | PackedLayout:
    """The layout for a batch.

    Args:
      input_mask: int32 [B, S], 1 for real tokens.
      operations: see PackedLayout.
      packed: None: see `packs_here`.
    """
    if packed is None:
        packed = packs_here()
    if not packed:
        return PaddedLayout(input_mask)
    return PackedLayout(input_mask, operations)


def packs_here() -> bool:
    """Whether `packed=None` leaves padding out of the graph that is being made.

    It does where shapes may depend on values, not under XLA or a TPU's strategy, and not on GPUs,
    which would wait for the host to count the rows, and compile again for every new number.
    """
    return not (shapes_must_be_static() or has_gpu())
