"""The order of training: a function of (seed, epoch) that can be entered at any record.

It does not depend on the number of reader threads, on tf.random.set_seed or on TensorFlow's
version: shards and windows of records are permuted with stateless random numbers.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf

_READ_FILES = 16
_MANY_EPOCHS = 1 << 40


def permutation(size: tf.Tensor, seed: int, *indices: tf.Tensor) -> tf.Tensor:
    """int64 [size]: a random order that depends on the arguments only."""
    key = tf.constant([seed, 0], tf.int64)
    for index in indices:
        key = tf.random.experimental.stateless_fold_in(key, index, alg="philox")
    draws = tf.random.stateless_uniform([size], key, 0, 1 << 62, tf.int64, alg="philox")
    return tf.argsort(draws, stable=True)


def batch_epochs(
    epoch: Callable[[tf.Tensor], tf.data.Dataset],
    num_examples: int,
    batch_size: int,
    start_step: int,
    rest_of_epoch: Callable[[int, int], tf.data.Dataset] | None = None,
) -> tf.data.Dataset:
    """Infinite batches over epoch(0), epoch(1), ..., from global batch `start_step` on.

    Batches run across the ends of epochs, so none is short; only the first epoch is skipped into.

    Args:
      epoch: number of an epoch, an int64 scalar -> its examples.
      num_examples: of each epoch.
      batch_size: B.
      start_step: how many batches are left out.
      rest_of_epoch: (number of an epoch, how many of its examples are left out) -> the others; None
        where reading and dropping them costs nothing.
    """
    first, offset = divmod(start_step * batch_size, num_examples)
    if rest_of_epoch:
        dataset = rest_of_epoch(first, offset)
    else:
        dataset = epoch(tf.constant(first, tf.int64)).skip(offset)
    others = tf.data.Dataset.range(first + 1, _MANY_EPOCHS).flat_map(epoch)
    return dataset.concatenate(others).batch(batch_size, drop_remainder=True)


@dataclasses.dataclass(frozen=True)
class RecordOrder:
    """The records of some shards in the order of training.

    The shards of an epoch come in random order; 16 are read at a time, one record of each in turn;
    the records are then shuffled in windows.

    Attributes:
      paths: the shards.
      counts: how many records each holds, at least one.
      window: how many records are shuffled at a time.
      seed: of the order.
      read: path -> its records, or something else for each of them.
    """

    paths: Sequence[str]
    counts: Sequence[int]
    window: int
    seed: int
    read: Callable[[tf.Tensor], tf.data.Dataset] = tf.data.TFRecordDataset

    def epoch(self, number: tf.Tensor) -> tf.data.Dataset:
        """All records of an epoch, whose number is an int64 scalar."""
        shards = self._shards(number)
        return self._records(number, tf.gather(self.paths, shards), tf.zeros_like(shards), 0)

    def rest_of_epoch(self, number: int, position: int) -> tf.data.Dataset:
        """What `epoch` gives from a position on, without reading what comes before.

        Shards that are finished there are not opened. In the 16 that are being read, TensorFlow
        goes from record to record by their lengths. Only the window around the position is read as
        a whole.
        """
        window, offset = divmod(position, self.window)
        epoch = tf.constant(number, tf.int64)
        with tf.device("CPU"):
            shards = self._shards(epoch).numpy()
        counts = [self.counts[shard] for shard in shards]
        being_read = interleaving_at(counts, _READ_FILES, window * self.window)
        paths = [self.paths[shards[index]] for index, _ in being_read]
        skipped = [count for _, count in being_read]
        return self._records(epoch, paths, skipped, window).skip(offset)

    def _shards(self, epoch: tf.Tensor) -> tf.Tensor:
        """int64 [shards]: the order in which an epoch begins to read them."""
        return permutation(len(self.paths), self.seed, epoch, tf.constant(-1, tf.int64))

    def _records(
        self, epoch: tf.Tensor, paths: tf.Tensor, skipped: tf.Tensor, first_window: int
    ) -> tf.data.Dataset:
        """The records of shards, without the first ones of each, from the start of a window on."""
        shards = tf.data.Dataset.from_tensor_slices((paths, tf.cast(skipped, tf.int64)))
        dataset = shards.interleave(
            lambda path, count: self.read(path).skip(count),
            cycle_length=min(len(self.paths), _READ_FILES),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )

        def shuffle(index: tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
            order = permutation(tf.shape(batch)[0], self.seed, epoch, index)
            return tf.gather(batch, order)

        windows = dataset.batch(self.window).enumerate(first_window)
        return windows.map(shuffle).prefetch(1).unbatch()


def interleaving_at(
    counts: Sequence[int], cycle_length: int, position: int
) -> list[tuple[int, int]]:
    """How tf.data's interleave goes on after `position` elements, for inputs of known lengths.

    It takes an element of each of `cycle_length` inputs in turn. A turn that finds an input at its
    end gives nothing, and the next one there opens the next input. Three inputs of 2, 1 and 4
    elements, two at a time, give 0 1 0 - - 2 2 2 2; `interleaving_at([2, 1, 4], 2, 3)` is
    [(1, 1), (0, 2), (2, 0)].

    Args:
      counts: how many elements each input has.
      cycle_length: how many inputs are read at a time.
      position: how many elements are left out, at most all.

    Returns:
      The inputs, and how many elements of each are left out, so that an interleave over these gives
      what the one over all inputs gives from there on.
    """
    left, unopened = list(counts), collections.deque(range(len(counts)))
    places: list[int | None] = [None] * min(cycle_length, len(counts))
    turn = 0
    while position:
        if turn == 0 and (None not in places or not unopened):
            # Rounds in which no input ends are counted at once: shards are few, records are many.
            reading = [index for index in places if index is not None]
            rounds = min(position // len(reading), *(left[index] for index in reading))
            for index in reading:
                left[index] -= rounds
            position -= rounds * len(reading)
            if not position:
                break
        if places[turn] is None and unopened:
            places[turn] = unopened.popleft()
        index = places[turn]
        if index is not None and left[index]:
            left[index] -= 1
            position -= 1
        else:
            places[turn] = None
        turn = (turn + 1) % len(places)
    found = []
    for index in (*places[turn:], *places[:turn]):
        if index is not None:
            found.append((index, counts[index] - left[index]))
        elif unopened:
            found.append((unopened.popleft(), 0))
    return [*found, *((index, 0) for index in unopened)]
