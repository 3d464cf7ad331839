"""The devices that a model is trained on, as one of TensorFlow's strategies."""

from __future__ import annotations

import json
import os
import socket
from urllib.parse import urlsplit

import tensorflow as tf

from albert_tf.errors import UserError

_TPU_SECONDS = 10
DISTRIBUTIONS = ("one_device", "mirrored", "multi_worker_mirrored", "tpu")
"""The names that `make_strategy` takes."""


def make_strategy(distribution: str, tpu: str | None = None) -> tf.distribute.Strategy:
    """The strategy that a flag names.

    Args:
      distribution: "one_device": the first GPU, or the CPU. "mirrored": all GPUs of this machine,
        or all its logical CPU devices. "multi_worker_mirrored": the workers of the environment
        variable TF_CONFIG. "tpu": a TPU slice.
      tpu: for "tpu": name or grpc:// address, "local" on a TPU virtual machine.

    Raises:
      UserError: the name is unknown, there is no such TPU, or TF_CONFIG does not name the workers.
    """
    if distribution not in DISTRIBUTIONS:
        raise UserError(f"--distribution={distribution} is not one of {', '.join(DISTRIBUTIONS)}.")
    if tpu and distribution != "tpu":
        raise UserError(
            f"--tpu={tpu} needs --distribution=tpu, not {distribution}. Pass both, or neither."
        )
    if distribution == "tpu":
        return _tpu_strategy(tpu)
    if distribution == "multi_worker_mirrored":
        if not os.environ.get("TF_CONFIG"):
            raise UserError(
                "--distribution=multi_worker_mirrored takes its workers from the environment "
                "variable TF_CONFIG, which is not set. Set it on each worker, or use mirrored."
            )
        return _multi_worker_strategy(os.environ["TF_CONFIG"])
    kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    devices = [device.name for device in tf.config.list_logical_devices(kind)]
    if distribution == "one_device":
        return tf.distribute.OneDeviceStrategy(devices[0])
    return tf.distribute.MirroredStrategy(devices)


def _multi_worker_strategy(given: str) -> tf.distribute.Strategy:
    """The strategy of the workers in TF_CONFIG; a UserError if it does not name them."""
    try:
        config = json.loads(given)
        if not (isinstance(config, dict) and {"cluster", "task"} <= config.keys()):
            raise ValueError("it needs both cluster and task")
        return tf.distribute.MultiWorkerMirroredStrategy()
    except ValueError as error:
        raise UserError(
            f"--distribution=multi_worker_mirrored: the environment variable TF_CONFIG={given} "
            f"does not name the workers ({error}). Set it as in "
            '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", '
            '"index": 0}}.'
        ) from None


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process writes the files of a run: of several workers, the first does."""
    # If TF_CONFIG has no job "chief", the first worker is the chief.
    resolver = strategy.cluster_resolver
    if (
        not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        or not resolver.task_type
    ):
        return True
    has_chief = "chief" in resolver.cluster_spec().jobs
    return resolver.task_type == "chief" or (not has_chief and resolver.task_id == 0)


def wait_for_all(strategy: tf.distribute.Strategy) -> None:
    """Returns when every worker has called it."""
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        float(sum_over_workers(strategy, tf.constant(0.0)))


def sum_over_workers(strategy: tf.distribute.Strategy, value: tf.Tensor) -> tf.Tensor:
    """The sum of the scalars that the replicas of all workers pass, also in a graph."""

    def replica_sum() -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        # The copy is on the replica's device; the given tensor may be on none.
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(value))

    return strategy.experimental_local_results(strategy.run(replica_sum))[0]


def _tpu_strategy(tpu: str | None) -> tf.distribute.Strategy:
    if not tpu:
        raise UserError(
            "--distribution=tpu needs --tpu: a name, a grpc:// address, or 'local' on a TPU "
            "machine."
        )
    try:
        if tpu.startswith("grpc://"):
            # TensorFlow itself would try for minutes. 8470 is the usual port of Cloud TPUs.
            place = urlsplit(tpu)
            socket.create_connection((place.hostname, place.port or 8470), _TPU_SECONDS).close()
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu)
        if tpu != "local":
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, RuntimeError, tf.errors.OpError, OSError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].partition(". ")[0]
        raise UserError(
            f"no TPU could be reached with --tpu={tpu}: {reason}. Check its name or address, and "
            "that it runs; 'local' is for the machine that has the TPU."
        ) from None
    return tf.distribute.TPUStrategy(resolver)
