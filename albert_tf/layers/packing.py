"""How tokens lie in memory between the dense layers: the only file that knows.

Dense layers see tokens as rows, `[T, width]`; attention needs them by sequence, `[B, S, width]`.
A layout goes from one to the other. The padded one has a row for every position (T = B * S) and
static shapes, as TPUs and XLA need. The packed one has rows for real tokens only, so that no dense
layer works on padding; both give the same values and gradients at real tokens.
"""

from __future__ import annotations

import tensorflow as tf

from albert_tf.layers.functions import once_in_graph

# In training the number of packed rows is a multiple of this, or that of all positions.
_TRAINING_ROWS = 64


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

    def rows_at(self, rows: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Rows [T, width] at some positions, int32 [B, P] -> [B * P, width]."""
        starts = tf.range(self.batch)[:, None] * self.sequence  # [B, 1]
        return tf.gather(rows, tf.reshape(starts + positions, [-1]))


class PackedLayout:
    """Real tokens are rows, in the order of sequences and positions.

    The first position of a sequence with real tokens counts as real, since heads read it. What is
    no row is zero when it is asked for by position, and without gradient. A batch without padding
    is not moved at all.
    """

    def __init__(self, input_mask: tf.Tensor, training: bool = False) -> None:
        """Rows for the real tokens of a batch.

        Args:
          input_mask: int32 [B, S], 1 for real tokens.
          training: round the number of rows up, with the first few paddings, so that few kernels
            are compiled, and prepare for faster gradients than TensorFlow's own.
        """
        self._training = training
        shape = tf.shape(input_mask)
        self.batch, self.sequence = shape[0], input_mask.shape[1] or shape[1]
        real = tf.not_equal(input_mask, 0)
        first = tf.equal(tf.range(self.sequence), 0) & tf.reduce_any(real, axis=1, keepdims=True)
        flat = tf.reshape(real | first, [-1])  # [B * S]
        if training:
            missing = -tf.reduce_sum(tf.cast(flat, tf.int32)) % _TRAINING_ROWS
            flat |= tf.cumsum(tf.cast(~flat, tf.int32)) <= missing
        self._places = tf.where(flat)  # [T, 1] int64: row -> position among B * S.
        # Position among B * S -> row; padding points behind the last row.
        counts = tf.cumsum(tf.cast(flat, tf.int32)) - 1
        self._row_of = tf.where(flat, counts, tf.shape(self._places)[0])

    def to_rows(self, padded: tf.Tensor) -> tf.Tensor:
        """[B, S, ...] -> [T, ...]."""
        flat = tf.reshape(padded, tf.concat([[-1], tf.shape(padded)[2:]], axis=0))
        return (_take if self._training else _gather)(flat, self._places)

    def to_padded(self, rows: tf.Tensor) -> tf.Tensor:
        """[T, width] -> [B, S, width], zero at padding."""
        width = rows.shape[-1]
        put = _put if self._training else _scatter
        padded = put(rows, self._places, self.batch * self.sequence)
        return tf.reshape(padded, [self.batch, self.sequence, width])

    def add_positions(self, rows: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
        """Adds to each row [T, E] the entry of `table` [positions, E] of its position."""
        positions = tf.cast(self._places[:, 0], tf.int32) % self.sequence  # [T]
        return rows + tf.gather(table[: self.sequence], positions)

    def rows_at(self, rows: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Rows [T, width] at some positions, int32 [B, P] -> [B * P, width], zero at padding."""
        places = tf.reshape(tf.range(self.batch)[:, None] * self.sequence + positions, [-1])
        with_zero = tf.pad(rows, [[0, 1], [0, 0]])  # Row T is what padding holds.
        return tf.gather(with_zero, tf.gather(self._row_of, places))


def _take(flat: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """flat [n, ...] at places int64 [T, 1], all different and rising -> [T, ...]."""

    @tf.custom_gradient
    def take(values: tf.Tensor):
        # A scatter of different places: faster than the sum over segments of a gather's gradient.
        size = tf.shape(values)[0]
        return _gather(values, places), lambda upstream: _scatter(upstream, places, size)

    return take(flat)


def _put(rows: tf.Tensor, places: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """rows [T, ...] to places int64 [T, 1], all different and rising, of zeros [size, ...]."""

    @tf.custom_gradient
    def put(values: tf.Tensor):
        return _scatter(values, places, size), lambda upstream: _gather(upstream, places)

    return put(rows)


@once_in_graph
def _gather(flat: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    full = tf.equal(tf.shape(places)[0], tf.shape(flat)[0])
    return tf.cond(full, lambda: flat, lambda: tf.gather_nd(flat, places))


@once_in_graph
def _scatter(rows: tf.Tensor, places: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    def scatter() -> tf.Tensor:
        shape = tf.concat([[size], tf.shape(rows)[1:]], axis=0)
        return tf.scatter_nd(places, rows, tf.cast(shape, places.dtype))

    return tf.cond(tf.equal(tf.shape(rows)[0], size), lambda: rows, scatter)


def make_layout(
    input_mask: tf.Tensor, packed: bool | None = None, training: bool = False
) -> PaddedLayout | PackedLayout:
    """The layout for a batch.

    Args:
      input_mask: int32 [B, S], 1 for real tokens.
      packed: None: see `packs_here`.
      training: see PackedLayout.
    """
    if packed is None:
        packed = packs_here()
    if not packed:
        return PaddedLayout(input_mask)
    return PackedLayout(input_mask, training)


def packs_here() -> bool:
    """Whether `packed=None` leaves padding out of the graph that is being made.

    It does where shapes may depend on values, not under XLA or a TPU's strategy, and not on GPUs,
    which would wait for the host to count the rows, and compile again for every new number.
    """
    return not (shapes_must_be_static() or tf.config.list_logical_devices("GPU"))


def is_for_tpu(strategy: tf.distribute.Strategy) -> bool:
    """Whether it is either of TensorFlow's two strategies for TPUs, which are not related."""
    return isinstance(strategy, (tf.distribute.TPUStrategy, tf.distribute.experimental.TPUStrategy))


def shapes_must_be_static() -> bool:
    """Whether the graph that is being made is for XLA or a TPU."""
    if is_for_tpu(tf.distribute.get_strategy()):
        return True
    graph = tf.compat.v1.get_default_graph()
    while graph is not None:  # tf.function(jit_compile=True) leaves its mark on an outer graph.
        context = graph._get_control_flow_context()
        while context is not None:
            if context.IsXLAContext():
                return True
            context = context.outer_context
        graph = getattr(graph, "outer_graph", None)
    return False
