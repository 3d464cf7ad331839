"""Global batches: what sizes are possible, and which rows a host gets."""

import pytest
import tensorflow as tf

from data_pipeline.errors import UserError
from data_pipeline.records.batches import check_batch, host_rows, with_options


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


def test_the_order_of_a_dataset_is_kept():
    dataset = with_options(tf.data.Dataset.range(5))
    options = dataset.options()
    assert options.deterministic is True
    policy = options.experimental_distribute.auto_shard_policy
    assert policy == tf.data.experimental.AutoShardPolicy.DATA
    assert list(dataset.as_numpy_iterator()) == [0, 1, 2, 3, 4]
