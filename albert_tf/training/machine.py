"""How fast the machine multiplies matrices: the limit that training is held against."""

from __future__ import annotations

import time

import tensorflow as tf

from albert_tf.keras_compat import keras
from albert_tf.training.reporting import StepCost

_SIZE = 1536
_REPEATS = 10


def matmul_flops_per_second(dtype: str, strategy: tf.distribute.Strategy) -> float:
    """Best measured rate of square matrices of 1,536, which takes a fraction of a second.

    Args:
      dtype: of the matrices, "float32", "bfloat16" or "float16".
      strategy: its accelerators count all; logical CPU devices share one CPU.
    """

    @tf.function(autograph=False)
    def multiply(matrix: tf.Tensor) -> tf.Tensor:
        return tf.reduce_max(tf.matmul(matrix, matrix))

    matrix = tf.cast(tf.random.stateless_uniform([_SIZE, _SIZE], [0, 0]), dtype)
    float(multiply(matrix))
    seconds = []
    for _ in range(_REPEATS):
        started = time.perf_counter()
        float(multiply(matrix))
        seconds.append(time.perf_counter() - started)
    on_cpu = not tf.config.list_logical_devices("GPU")
    return 2 * _SIZE**3 / min(seconds) * (1 if on_cpu else strategy.num_replicas_in_sync)


def step_cost(tokens: int, flops_per_token: float, strategy: tf.distribute.Strategy) -> StepCost:
    """What a step of so many tokens takes here, in the precision in use."""
    dtype = keras.mixed_precision.global_policy().compute_dtype
    rate = matmul_flops_per_second(dtype, strategy)
    return StepCost(tokens, tokens * flops_per_token, rate)
