"""The order of training is what it was when runs began, and can be entered anywhere."""

import random

import pytest
import tensorflow as tf

from data_pipeline.records.order import RecordOrder, batch_epochs, interleaving_at

COUNTS = [5 + 7 * i % 23 for i in range(40)]  # More shards than are read at a time.
WINDOW = 50


def numbers(path: tf.Tensor) -> tf.data.Dataset:
    """A pretended shard "7:3" holds 700, 701 and 702."""
    shard, count = tf.unstack(tf.strings.to_number(tf.strings.split(path, ":"), tf.int64), num=2)
    return tf.data.Dataset.range(100 * shard, 100 * shard + count)


def order(seed: int = 9) -> RecordOrder:
    paths = [f"{shard}:{count}" for shard, count in enumerate(COUNTS)]
    return RecordOrder(paths, COUNTS, WINDOW, seed, numbers)


def listed(dataset: tf.data.Dataset) -> list[int]:
    return [int(number) for number in dataset.as_numpy_iterator()]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (0, [3602, 2503, 2502, 3600, 3500, 3501, 3001, 2701, 2801, 2800]),
        (70, [1904, 3104, 1505, 2003, 2904, 1905, 2805, 1404, 3305, 3504]),
    ],
)
def test_runs_that_began_with_older_versions_go_on(step, expected):
    """The order of commit db84dd7, in the first epoch and the second."""
    found = order()
    batches = batch_epochs(found.epoch, sum(COUNTS), 10, 10 * step, found.rest_of_epoch)
    assert next(iter(batches)).numpy().tolist() == expected


def test_the_rest_of_an_epoch():
    found, epoch = order(), 3
    whole = listed(found.epoch(tf.constant(epoch, tf.int64)))
    assert sorted(whole) == [100 * i + j for i, n in enumerate(COUNTS) for j in range(n)]
    for position in (0, 49, 50, 333, 645):
        assert listed(found.rest_of_epoch(epoch, position)) == whole[position:]


def interleaved(pairs: list[tuple[int, int]], counts: list[int], cycle: int) -> list[int]:
    """Numbers of the inputs that tf.data's interleave takes its elements from."""
    dataset = tf.data.Dataset.from_tensor_slices(pairs).interleave(
        lambda pair: tf.data.Dataset.from_tensors(pair[0]).repeat(
            tf.cast(tf.gather(counts, pair[0]) - pair[1], tf.int64)
        ),
        cycle_length=min(cycle, len(counts)),
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    return listed(dataset)


@pytest.mark.parametrize("seed", range(4))
def test_interleaving_goes_on(seed):
    """Inputs of any lengths, empty ones too, fewer or more than are read at a time."""
    rng = random.Random(seed)
    counts = [rng.randint(0, rng.choice([3, 30])) for _ in range(rng.choice([1, 4, 40]))]
    cycle = rng.choice([1, 3, 16])
    whole = interleaved([(index, 0) for index in range(len(counts))], counts, cycle)
    assert len(whole) == sum(counts)
    for position in {0, len(whole) // 3, rng.randint(0, len(whole)), max(0, len(whole) - 1)}:
        found = interleaving_at(counts, cycle, position)
        assert interleaved(found, counts, cycle) == whole[position:]


def test_interleaving_leaves_finished_inputs_out():
    assert interleaving_at([2, 1, 4], 2, 3) == [(1, 1), (0, 2), (2, 0)]
    counts = [10_000] * 30_000
    found = interleaving_at(counts, 16, 200_000_000)
    assert len(found) == 10_016  # Those that are being read are at their end.
    assert sum(counts[index] - given for index, given in found) == 100_000_000
