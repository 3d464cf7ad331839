"""Batches of examples: of similar lengths in random order for training, one pass for evaluation.

Rows are converted to model inputs batch by batch, and padded to the longest row of the batch. The
order is a function of (seed, epoch), so that a run can resume at any batch.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import numpy as np
import tensorflow as tf

from data_pipeline.records.batches import check_batch, host_rows, with_options
from data_pipeline.records.python_calls import until_exit

# Lengths of batches are multiples of it, to limit the number of shapes that XLA compiles.
_LENGTH_STEP = 32
_ROWS_OF_A_MEAN = 1000
# Number of batches whose rows are sorted by length together.
LENGTH_WINDOW = 64
Source = TypeVar("Source")


@dataclasses.dataclass(frozen=True, eq=False)
class Features(Generic[Source]):
    """N rows of model inputs. A row is an example, or in SQuAD a window.

    Attributes:
      source: what the rows were made from, such as a list of examples, or `Windows`.
      inputs: (numbers of rows int64 [B], length L) -> the model inputs by name, [B, L] or
        [B, C, L], and the targets of each piece, if there are any.
      lengths: int64 [N], number of pieces of each row, in its longest sequence if it has several.
      max_seq_length: S; no row is longer.
      targets: the targets of each row by name, [N]; empty if they are unknown.
      content: arrays by name that determine all of the above, used to identify the data.
      sequence_outputs: names of the model's outputs that have an axis of pieces, [B, L, ...].
    """

    source: Source
    inputs: Callable[[np.ndarray, int], dict[str, np.ndarray]]
    lengths: np.ndarray
    max_seq_length: int
    targets: Mapping[str, np.ndarray]
    content: Mapping[str, np.ndarray]
    sequence_outputs: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lengths)

    def mean_tokens(self) -> float:
        """Mean number of tokens per row (all its sequences, without padding), from 1,000 rows."""
        rows = np.unique(np.linspace(0, len(self) - 1, _ROWS_OF_A_MEAN).astype(np.int64))
        return float(self.inputs(rows, self.max_seq_length)["input_mask"].sum() / len(rows))

    def batch(self, rows: np.ndarray, length: int) -> dict[str, np.ndarray]:
        """Inputs and targets of the rows int64 [B]; a row of -1 only fills the batch.

        They are padded to `length`, at least that of the longest row. Two arrays are added:
        `row_numbers` int64 [B], and `example_weights` float32 [B], 0 for filling rows.
        """
        is_real = rows >= 0
        # Filling rows use the shortest row: others may be longer than L.
        taken = rows if is_real.all() else np.where(is_real, rows, np.argmin(self.lengths))
        return {
            **self.inputs(taken, length),
            **{name: values[taken] for name, values in self.targets.items()},
            "row_numbers": rows,
            "example_weights": is_real.astype(np.float32),
        }


def padded_length(longest: int, max_seq_length: int) -> int:
    """The length of a batch, a multiple of 32, or S: 33 -> 64; for S = 50, 33 -> 50."""
    return min(-(-longest // _LENGTH_STEP) * _LENGTH_STEP, max_seq_length)


def draw_order(size: int, *key: int) -> np.ndarray:
    """int64 [size], a random order of 0 to size - 1 that depends on the arguments only."""
    seed = np.random.SeedSequence([number % (1 << 63) for number in key])
    # A run may resume with another version of NumPy. Philox draws the same bits in all versions;
    # NumPy's `permutation` does not guarantee this.
    return np.argsort(np.random.Philox(seed).random_raw(size), kind="stable")


class TrainingOrder:
    """The rows of each batch in training without end.

    Every epoch has each row once. Batches cross the ends of epochs. Rows are put in random order;
    those of 64 batches at a time are sorted by length and cut into batches, which are shuffled:

        lengths 9 2 8 1 7 3, batches of 2 -> 1 2 | 3 7 | 8 9 -> 8 9 | 1 2 | 3 7
    """

    def __init__(
        self, lengths: np.ndarray, batch_size: int, seed: int, window: int = LENGTH_WINDOW
    ) -> None:
        """Lengths are int64 [N]; with a window of 1, rows stay in random order."""
        self._lengths, self._batch_size = lengths, batch_size
        self._seed, self._window = seed, window
        self._epoch = functools.lru_cache(maxsize=2)(self._make_epoch)

    def rows(self, step: int) -> np.ndarray:
        """int64 [B], the rows of the batch with number `step`, from 0."""
        positions = step * self._batch_size + np.arange(self._batch_size)
        epochs, places = np.divmod(positions, len(self._lengths))
        parts = [self._epoch(int(epoch))[places[epochs == epoch]] for epoch in np.unique(epochs)]
        return np.concatenate(parts)

    def _make_epoch(self, number: int) -> np.ndarray:
        """int64 [N], all rows in the order of an epoch."""
        size = self._batch_size
        order = draw_order(len(self._lengths), self._seed, number)
        if self._window == 1:
            return order
        # The first rows complete the last batch of the previous epoch.
        head = min(-number * len(order) % size, len(order))
        parts = [order[:head]]
        for start in range(head, len(order), size * self._window):
            rows = order[start : start + size * self._window]
            rows = rows[np.argsort(self._lengths[rows], kind="stable")]
            whole = len(rows) // size
            shuffled = draw_order(whole, self._seed, number, start)
            parts += [rows[: whole * size].reshape(whole, size)[shuffled].ravel()]
            parts += [rows[whole * size :]]
        return np.concatenate(parts)


def evaluation_rows(lengths: np.ndarray, batch_size: int) -> np.ndarray:
    """int64 [batches, B], every row once, the longest first; -1 fills the last batch."""
    # Longest first, so that a batch that does not fit into memory fails at once.
    order = np.argsort(-lengths, kind="stable")
    filler = np.full(-len(order) % batch_size, -1)
    return np.concatenate([order, filler]).reshape(-1, batch_size)


def finetuning_dataset(
    features: Features,
    global_batch_size: int,
    *,
    seed: int = 0,
    training: bool = True,
    start_step: int = 0,
    input_context: tf.distribute.InputContext | None = None,
    static_shapes: bool = False,
    length_window: int = LENGTH_WINDOW,
) -> tf.data.Dataset:
    """Batches of model inputs and targets, dicts of arrays [B, ...]; see `Features.batch`.

    Args:
      training: infinite batches, see `TrainingOrder`; otherwise one pass, see `evaluation_rows`.
      start_step: number of batches already used; the first batch is the one after them.
      input_context: identifies this host among several; it gets its part of each global batch.
      static_shapes: all batches have the length S; otherwise their `padded_length`.
    """
    check_batch(global_batch_size, start_step)
    first, end = host_rows(global_batch_size, input_context)
    if training:
        order = TrainingOrder(features.lengths, global_batch_size, seed, length_window)
        rows_of, num_batches = order.rows, np.iinfo(np.int64).max
    else:
        table = evaluation_rows(features.lengths, global_batch_size)
        rows_of, num_batches = table.__getitem__, len(table)
    sample = features.batch(np.zeros(1, np.int64), features.max_seq_length)

    def make(step: np.ndarray) -> list[np.ndarray]:
        rows = rows_of(int(step))
        length = features.max_seq_length
        if not static_shapes:
            # The length of the global batch, so that all hosts and replicas have the same length.
            length = padded_length(int(features.lengths[rows[rows >= 0]].max()), length)
        return list(features.batch(rows[first:end], length).values())

    def take(step: tf.Tensor) -> dict[str, tf.Tensor]:
        dtypes = [values.dtype for values in sample.values()]
        batch = dict(zip(sample, tf.numpy_function(until_exit(make), [step], dtypes)))
        for name, values in sample.items():
            others = values.shape[1:] if static_shapes else [None] * (values.ndim - 1)
            batch[name].set_shape([end - first, *others])
        return batch

    steps = tf.data.Dataset.range(start_step, num_batches)
    make_batch = tf.autograph.experimental.do_not_convert(take)
    return with_options(steps.map(make_batch, num_parallel_calls=2, deterministic=True))
