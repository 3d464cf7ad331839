"""The rate at which the machine multiplies matrices: the limit that training is compared with."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import tensorflow as tf

from albert_tf.machine.targets import is_for_tpu
from albert_tf.training.report.progress import StepCost

_SMALLEST, _LARGEST = 96, 1536
_REPEATS = 10
_SECONDS = 0.3


def matmul_flops_per_second(dtype: str, strategy: tf.distribute.Strategy) -> float:
    """The best measured rate of a product of square matrices on all devices of a strategy, in
    floating point operations per second; 0: unknown.
    """
    if is_for_tpu(strategy):
        return 0.0  # This would measure the host.

    @functools.cache
    def matrix_of(size: int) -> tf.Tensor:
        return tf.cast(tf.random.stateless_uniform([size, size], [0, 0]), dtype)

    def seconds(size: int) -> float:
        matrix = matrix_of(size)
        started = time.perf_counter()
        float(tf.reduce_max(tf.matmul(matrix, matrix)))
        return time.perf_counter() - started

    # Logical CPU devices share one CPU.
    on_cpu = not tf.config.list_logical_devices("GPU")
    return best_rate(seconds) * (1 if on_cpu else strategy.num_replicas_in_sync)


def best_rate(seconds: Callable[[int], float]) -> float:
    """The rate, in operations per second, of the largest product that can be tried if all attempts
    take about a third of a second; `seconds` multiplies two matrices of a size and returns the time
    it took.
    """
    # Without a fast kernel (float16 on most CPUs), a product of size 1,536 takes 15 seconds.
    size, spent = _SMALLEST, 0.0
    seconds(size)  # The very first call sets up threads and buffers.
    best = seconds(size)
    while size < _LARGEST and spent + 2**3 * best < _SECONDS:  # Twice the size: 2^3 the work.
        size *= 2
        best = seconds(size)
        spent += best
    for _ in range(_REPEATS):
        if spent + best > _SECONDS:
            break
        again = seconds(size)
        spent += again
        best = min(best, again)
    return 2 * size**3 / best


def step_cost(
    tokens: float, flops_per_token: float, dtype: str, strategy: tf.distribute.Strategy
) -> StepCost:
    """The cost of a training step on a global batch of `tokens`, and the machine's rate."""
    rate = matmul_flops_per_second(dtype, strategy)
    return StepCost(tokens, tokens * flops_per_token, rate)
