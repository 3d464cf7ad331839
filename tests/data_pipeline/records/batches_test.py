"""Global batches: what sizes are possible, and which rows a host gets."""

import pytest
import tensorflow as tf

from data_pipeline.errors import UserError
from data_pipeline.records.batches import check_batch, host_rows, map_host_rows, with_options


def test_impossible_sizes_are_refused():
    check_batch(1, 0)
    with pytest.raises(UserError, match=r"batch size should be at least 1; received 0\."):
        check_batch(0, 0)
    with pytest.raises(UserError, match=r"start_step should not be negative; received -1\."):
        check_batch(8, -1)


def rows_of_hosts(batch_size, count):
    contexts = [tf.distribute.InputContext(count, host, count) for host in range(count)]
    return [host_rows(batch_size, context) for context in contexts]


def test_hosts_share_the_rows_of_a_batch():
    assert host_rows(8, None) == (0, 8)
    assert rows_of_hosts(8, 1) == [(0, 8)]
    assert rows_of_hosts(8, 2) == [(0, 4), (4, 8)]
    assert rows_of_hosts(8, 3) == [(0, 2), (2, 5), (5, 8)]
    assert rows_of_hosts(3, 3) == [(0, 1), (1, 2), (2, 3)]
    with pytest.raises(UserError, match=r"^3 hosts cannot share batches of 2\. Make them larger"):
        rows_of_hosts(2, 3)


def test_a_host_converts_whole_groups_and_gives_its_own_rows():
    """Groups of 4 in batches of 15 rows, of which the second of three hosts converts 4 to 11."""

    def convert(number, rows, first):
        return {"rows": rows, "seen": tf.fill(tf.shape(rows), number * 100 + first * 10)}

    batches = tf.data.Dataset.from_tensors(tf.range(15, dtype=tf.int64))
    found = []
    for host in range(3):
        context = tf.distribute.InputContext(3, host, 3)
        (batch,) = map_host_rows(batches, convert, 15, 7, context, group=4)
        found.append({name: values.numpy().tolist() for name, values in batch.items()})
    assert found == [
        {"rows": [0, 1, 2, 3, 4], "seen": [700] * 5},
        {"rows": [5, 6, 7, 8, 9], "seen": [740] * 5},
        {"rows": [10, 11, 12, 13, 14], "seen": [780] * 5},
    ]


def test_the_order_of_a_dataset_is_kept():
    dataset = with_options(tf.data.Dataset.range(5))
    options = dataset.options()
    assert options.deterministic is True
    assert options.autotune.enabled is False
    policy = options.experimental_distribute.auto_shard_policy
    assert policy == tf.data.experimental.AutoShardPolicy.DATA
    assert list(dataset.as_numpy_iterator()) == [0, 1, 2, 3, 4]
