"""Global batches that several hosts share: sizes checked, rows divided, options of the dataset."""

from __future__ import annotations

import tensorflow as tf

from data_pipeline.errors import UserError


def check_batch(global_batch_size: int, start_step: int) -> None:
    """Raises UserError for impossible sizes."""
    if global_batch_size < 1:
        raise UserError(f"The batch size should be at least 1; received {global_batch_size}.")
    if start_step < 0:
        raise UserError(f"start_step should not be negative; received {start_step}.")


def host_rows(
    global_batch_size: int, input_context: tf.distribute.InputContext | None
) -> tuple[int, int]:
    """Where the rows of a host begin and end in a global batch; None: there is one host."""
    if input_context is None:
        return 0, global_batch_size
    host, num_hosts = input_context.input_pipeline_id, input_context.num_input_pipelines
    if global_batch_size < num_hosts:
        raise UserError(
            f"{num_hosts} hosts cannot share batches of {global_batch_size}. Make them larger."
        )
    first, end = (global_batch_size * number // num_hosts for number in (host, host + 1))
    return first, end


def with_options(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Deterministic order, also when several workers share the data; one batch ahead or more."""
    options = tf.data.Options()
    options.deterministic = True
    policy = tf.data.experimental.AutoShardPolicy.DATA
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.prefetch(tf.data.AUTOTUNE).with_options(options)
