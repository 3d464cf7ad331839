"""Global batches shared by several hosts: size checks, the rows of each host, dataset options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from data_pipeline.errors import UserError


def check_batch(global_batch_size: int, start_step: int) -> None:
    """Raises UserError unless the batch size is positive and the step is not negative."""
    if global_batch_size < 1:
        raise UserError(f"The batch size should be at least 1; received {global_batch_size}.")
    if start_step < 0:
        raise UserError(f"start_step should not be negative; received {start_step}.")


def host_rows(
    global_batch_size: int, input_context: tf.distribute.InputContext | None
) -> tuple[int, int]:
    """The first row of a host in a global batch, and the row after its last. An input context of
    None means a single host. More hosts than rows are a UserError.

    10 rows for 3 hosts -> (0, 3), (3, 6), (6, 10).
    """
    if input_context is None:
        return 0, global_batch_size
    host, num_hosts = input_context.input_pipeline_id, input_context.num_input_pipelines
    if global_batch_size < num_hosts:
        raise UserError(
            f"{num_hosts} hosts cannot share batches of {global_batch_size}. Make them larger."
        )
    first, end = (global_batch_size * number // num_hosts for number in (host, host + 1))
    return first, end


def map_host_rows(
    batches: tf.data.Dataset,
    convert: Callable[[tf.Tensor, Any, int], dict[str, tf.Tensor]],
    global_batch_size: int,
    start_step: int,
    input_context: tf.distribute.InputContext | None,
    group: int = 1,
) -> tf.data.Dataset:
    """Converts only this host's rows of each global batch of `global_batch_size` rows, and returns
    only those.

    `convert` gets the number of the batch, some of its rows, and the number of the first of them.
    `batches` begins with batch `start_step`. Rows are converted in groups of `group`.
    """
    first, end = host_rows(global_batch_size, input_context)
    # Random numbers are drawn for whole groups, so a host also converts the rows in the same groups
    # as its first and last row. Groups of 64, rows 100 to 199: rows 64 to 255 are converted, and 36
    # to 135 of these are kept.
    low, high = first // group * group, min(-(-end // group) * group, global_batch_size)

    def own_rows(number: tf.Tensor, batch: Any) -> dict[str, tf.Tensor]:
        some = tf.nest.map_structure(lambda values: values[low:high], batch)
        converted = convert(number, some, low)
        return {name: values[first - low : end - low] for name, values in converted.items()}

    return batches.enumerate(start_step).map(own_rows, num_parallel_calls=tf.data.AUTOTUNE)


def with_options(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Makes a dataset deterministic, also on several workers, and prefetches its batches."""
    options = tf.data.Options()
    options.deterministic = True
    # The tuner makes the end of an iterator wait for its next round, up to a minute: its thread
    # reads whether it should stop before that is set (`Model::OptimizeLoop`, TensorFlow 2.15 to
    # 2.21).
    options.autotune.enabled = False
    # The default shards by files if possible, so each worker would get other rows, in whole files.
    policy = tf.data.experimental.AutoShardPolicy.DATA
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.prefetch(tf.data.AUTOTUNE).with_options(options)
