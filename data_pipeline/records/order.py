"""The order of records in training: a function of (seed, epoch) that can start at any record.

It does not depend on the number of reader threads, on tf.random.set_seed or on TensorFlow's
version: shards and windows of records are permuted with stateless random numbers.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf

_READ_FILES = 16
_MANY_EPOCHS = 1 << 40  # Practically infinite; tf.data's range needs an end.


def permutation(size: tf.Tensor, seed: int, *indices: tf.Tensor) -> tf.Tensor:
    """int64 [size]: a random order of 0 to size - 1 that depends on the arguments only."""
    # Philox explicitly, as "auto_select" may draw other numbers on another device or version.
    key = tf.constant([seed, 0], tf.int64)
    for index in indices:
        key = tf.random.experimental.stateless_fold_in(key, index, alg="philox")
    draws = tf.random.stateless_uniform([size], key, 0, 1 << 62, tf.int64, alg="philox")
    return tf.argsort(draws, stable=True)


def shuffled(
    records: tf.data.Dataset, window: int, seed: int, epoch: tf.Tensor, first_window: int = 0
) -> tf.data.Dataset:
    """Shuffles records within windows of `window` records, by (seed, epoch); returns single
    records. `records` are those of an epoch from the beginning of window `first_window` on.
    """

    def shuffle(index: tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
        return tf.gather(batch, permutation(tf.shape(batch)[0], seed, epoch, index))

    windows = records.batch(window).enumerate(first_window)
    return windows.map(shuffle).prefetch(1).unbatch()


def batch_epochs(
    epoch: Callable[[tf.Tensor], tf.data.Dataset],
    num_examples: int,
    batch_size: int,
    examples_before: int,
    rest_of_epoch: Callable[[int, int], tf.data.Dataset] | None = None,
) -> tf.data.Dataset:
    """Infinite batches over epoch(0), epoch(1), ... without the first `examples_before` examples.
    Batches cross the ends of epochs, so none is short. `rest_of_epoch(number, n)` returns an epoch
    without its first n examples; None if reading and dropping these costs nothing.

        10 examples in batches of 4, examples_before 12: all of epoch 0 and the first two of epoch 1
        are left out -> batches 1:[2, 3, 4, 5], 1:[6, 7, 8, 9], 2:[0, 1, 2, 3], ...
    """
    # Only the first epoch may start in the middle.
    first, offset = divmod(examples_before, num_examples)
    if rest_of_epoch:
        dataset = rest_of_epoch(first, offset)
    else:
        dataset = epoch(tf.constant(first, tf.int64)).skip(offset)
    others = tf.data.Dataset.range(first + 1, _MANY_EPOCHS).flat_map(epoch)
    return dataset.concatenate(others).batch(batch_size, drop_remainder=True)


@dataclasses.dataclass(frozen=True)
class RecordOrder:
    """The records of some shards in the order of training: each epoch takes the shards in random
    order, reads 16 at a time, one record of each in turn, and shuffles the records in windows.
    """

    # Windows instead of tf.data's shuffle: the state of its buffer depends on everything read
    # before, so a run that resumes in the middle of an epoch would have to read it all again.
    # Windows are independent of each other, so only one is read.
    paths: Sequence[str]
    counts: Sequence[int]  # Number of records in each shard, at least one.
    window: int  # Number of records that are shuffled at a time.
    seed: int
    # Maps a path to a dataset with one element per record.
    read: Callable[[tf.Tensor], tf.data.Dataset] = tf.data.TFRecordDataset

    def epoch(self, number: tf.Tensor) -> tf.data.Dataset:
        """All records of an epoch, whose number is an int64 scalar."""
        shards = self._shards(number)
        return self._records(number, tf.gather(self.paths, shards), tf.zeros_like(shards), 0)

    def rest_of_epoch(self, number: int, position: int) -> tf.data.Dataset:
        """The records of `epoch` from a position on. Of the records before it, only those in the
        same window are read.
        """
        # Shards that are already finished at the position are not opened. In the 16 shards being
        # read, TensorFlow skips from record to record by their lengths.
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
        """int64 [shards]: the order in which an epoch opens the shards."""
        return permutation(len(self.paths), self.seed, epoch, tf.constant(-1, tf.int64))

    def _records(
        self, epoch: tf.Tensor, paths: tf.Tensor, skipped: tf.Tensor, first_window: int
    ) -> tf.data.Dataset:
        """The shuffled records of shards from window `first_window` on. `paths` are in the order in
        which they are opened; `skipped` [shards] is the number of records to skip in each.
        """
        shards = tf.data.Dataset.from_tensor_slices((paths, tf.cast(skipped, tf.int64)))
        dataset = shards.interleave(
            lambda path, count: self.read(path).skip(count),
            cycle_length=min(len(self.paths), _READ_FILES),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        return shuffled(dataset, self.window, self.seed, epoch, first_window)


def interleaving_at(
    counts: Sequence[int], cycle_length: int, position: int
) -> list[tuple[int, int]]:
    """State of tf.data's interleave after `position` elements, for inputs of lengths `counts`: a
    list of (number of the input, number of elements to skip) for the inputs that remain to be read.
    An interleave over these, in this order, gives the elements from `position` on.

    Three inputs of 2, 1 and 4 elements, two at a time, give 0 1 0 - - 2 2 2 2; `interleaving_at([2,
    1, 4], 2, 3)` is [(1, 1), (0, 2), (2, 0)].
    """
    left, unopened = list(counts), collections.deque(range(len(counts)))
    places: list[int | None] = [None] * min(cycle_length, len(counts))
    turn = 0
    # Interleave takes one element from each of `cycle_length` inputs in turn. A turn that finds an
    # exhausted input gives nothing; the next turn at that place opens the next input.
    while position:
        if turn == 0 and (None not in places or not unopened):
            # Rounds in which no input ends are skipped together: shards are few, records are many.
            reading = [index for index in places if index is not None]
            rounds = min(position // len(reading), *(left[index] for index in reading))
            for index in reading:
                left[index] -= rounds
            position -= rounds * len(reading)
            if not position:
                break
        if places[turn] is None and unopened:
            places[turn] = unopened.popleft()
        current = places[turn]
        if current is not None and left[current]:
            left[current] -= 1
            position -= 1
        else:
            places[turn] = None
        turn = (turn + 1) % len(places)
    found = []
    # The place whose turn it is comes first. An empty place opens the next input at its turn.
    for place in (*places[turn:], *places[:turn]):
        if place is not None:
            found.append((place, counts[place] - left[place]))
        elif unopened:
            found.append((unopened.popleft(), 0))
    return [*found, *((index, 0) for index in unopened)]
