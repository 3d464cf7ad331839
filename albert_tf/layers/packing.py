"""Layouts: how the tokens of a batch lie in memory. No other file depends on it."""

# Dense layers see tokens as rows [T, width]; attention needs them by sequence, [B, S, width]. A
# layout converts between the two. With B = 2, S = 3 and `.` for padding:
#
#     batch    padded rows, T = 6    packed rows, T = 4
#     a b .    a b . c d .           a b c d
#     c d .
#
# Nearly all arithmetic is in the dense layers, so packed rows save nearly the whole cost of
# padding: a batch like SST-2's, with 23 tokens per sentence on average and 48 at most, takes half
# the time (docs/benchmarks/notes.md). XLA and TPUs need the padded layout: they compile programs
# for fixed shapes, and T depends on the values of the mask. Values and gradients at real tokens are
# the same in both.

from __future__ import annotations

import tensorflow as tf

from albert_tf.machine.targets import packs_here, refuse_static_shapes


class PaddedLayout:
    """A row for every position, padding included."""

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
        # In packed rows a row's number is not its position, which is why the layout does this.
        return self.to_rows(self.to_padded(rows) + table[: self.sequence])

    def gather_positions(self, rows: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Rows [T, ...] at some positions, int32 [B, P] -> [B * P, ...]."""
        starts = tf.range(self.batch)[:, None] * self.sequence  # [B, 1]: 0, S, 2 S, ...
        return tf.gather(rows, tf.reshape(starts + positions, [-1]))


class PackedLayout(PaddedLayout):
    """A row for every real token, and for the first position of each sequence that has any.
    Positions without a row read as zero and have no gradient.
    """

    def __init__(self, input_mask: tf.Tensor, row_multiple: int = 1) -> None:
        """The first few paddings get rows until T is a multiple of `row_multiple`, or B * S."""
        super().__init__(input_mask)
        real = tf.not_equal(input_mask, 0)
        # Heads read position 0, even if the mask excludes it. A sequence without real tokens, which
        # only fills up a batch, needs no row.
        first = tf.equal(tf.range(self.sequence), 0) & tf.reduce_any(real, axis=1, keepdims=True)
        is_row = tf.reshape(real | first, [-1])  # [B * S]
        if row_multiple > 1:
            # XLA compiles again for each number of rows, so the number is rounded up.
            # The first `missing` paddings: multiple 3, [1 1 0 1 1 0] -> 2 missing -> [1 1 1 1 1 1].
            missing = -tf.reduce_sum(tf.cast(is_row, tf.int32)) % row_multiple
            is_row |= tf.cumsum(tf.cast(~is_row, tf.int32)) <= missing
        self._places = tf.where(is_row)  # [T, 1] int64, [1 1 0 1 1 0] -> 0 1 3 4.
        # [B * S]: place -> row, and padding -> T, behind the last: [1 1 0 1 1 0] -> 0 1 4 2 3 4.
        numbers = tf.cumsum(tf.cast(is_row, tf.int32)) - 1
        self._row_of = tf.where(is_row, numbers, tf.shape(self._places)[0])

    def to_rows(self, padded: tf.Tensor) -> tf.Tensor:
        """[B, S, ...] -> [T, ...]."""
        return tf.gather_nd(super().to_rows(padded), self._places)

    def to_padded(self, rows: tf.Tensor) -> tf.Tensor:
        """[T, width] -> [B, S, width], zero at padding."""
        # Attention multiplies the values at padding by 0, which needs finite ones: 0 * NaN is NaN.
        shape = tf.cast([self.batch * self.sequence, rows.shape[-1]], self._places.dtype)
        return super().to_padded(tf.scatter_nd(self._places, rows, shape))

    def add_positions(self, rows: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
        """Adds to each row [T, E] the entry of `table` [positions, E] of its position."""
        positions = tf.cast(self._places[:, 0], tf.int32) % self.sequence  # [T]
        return rows + tf.gather(table[: self.sequence], positions)

    def gather_positions(self, rows: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Rows [T, width] at some positions, [B * P, width], zero at padding."""
        with_zero = tf.pad(rows, [[0, 1], [0, 0]])  # Row T is for padding.
        return tf.gather(with_zero, super().gather_positions(self._row_of, positions))


def make_layout(
    input_mask: tf.Tensor, row_multiple: int = 1, packed: bool | None = None
) -> PaddedLayout:
    """The layout for a batch with the mask int32 [B, S]."""
    if packed:
        refuse_static_shapes()
    if packed or (packed is None and packs_here()):
        return PackedLayout(input_mask, row_multiple)
    return PaddedLayout(input_mask)
