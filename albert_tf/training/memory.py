"""Checks before training or evaluation that a batch fits into this machine's memory."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.analysis.costs import count_parameters, training_bytes
from albert_tf.analysis.machine_memory import machine_bytes
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError

# The estimate is for float32 and sequences without padding; bfloat16 and short texts take less.
_MARGIN = 2


def check_training_memory(
    config: AlbertConfig,
    batch_size: int,
    num_micro_batches: int,
    sequence_length: int,
    strategy: tf.distribute.Strategy,
    given: str,
) -> None:
    """Raises UserError if an update needs far more memory than there is, on CPUs; `batch_size` is
    over all replicas, and `given` is the flag that sets it.
    """
    here = _replicas_here(strategy)
    num_parameters = sum(count_parameters(config).values()) * here
    size = batch_size * here // (strategy.num_replicas_in_sync * num_micro_batches)
    needed = training_bytes(config, num_parameters, size, sequence_length)
    remedy = "Use a smaller one, more --gradient_accumulation_steps, or --recompute."
    _check(given, needed, remedy)


def _replicas_here(strategy: tf.distribute.Strategy) -> int:
    """The number of replicas on this machine."""
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return len(strategy.extended.worker_devices)  # Each worker has its share.
    return strategy.num_replicas_in_sync


def check_evaluation_memory(
    config: AlbertConfig, batch_size: int, sequence_length: int, strategy: tf.distribute.Strategy
) -> None:
    """Raises UserError if evaluating a batch, whose size is over all replicas, needs far more
    memory than there is.
    """
    size = batch_size * _replicas_here(strategy) // strategy.num_replicas_in_sync
    # Only one layer's activations are in memory at a time.
    needed = training_bytes(config.replace(recompute=True), 0, size, sequence_length)
    _check(f"--eval_batch_size={batch_size}", needed, "Use a smaller one.")


def _check(given: str, needed: int, remedy: str) -> None:
    """Raises UserError when far more memory is needed than there is; names the flag and a remedy.

    On CPUs only: accelerators have their own memory, and report when it is exhausted.
    """
    if tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("TPU"):
        return
    available = machine_bytes()
    if needed > _MARGIN * available:
        raise UserError(
            f"{given} needs about {needed / 2**30:,.0f} GiB of memory, and this "
            f"machine has {available / 2**30:,.0f}. {remedy}"
        )
