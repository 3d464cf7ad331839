"""The devices and the compiler that the current graph is made for."""

from __future__ import annotations

import functools
from pathlib import Path

import tensorflow as tf

from albert_tf.errors import UserError

_CPU_INFO = Path("/proc/cpuinfo")
# The first two are x86's, the last is ARM's.
_BFLOAT16_INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16"}


@functools.cache  # Queried once, not whenever a model is traced.
def has_gpu() -> bool:
    """Whether TensorFlow has a GPU."""
    return bool(tf.config.list_logical_devices("GPU"))


@functools.cache
def has_tpu() -> bool:
    """Whether TensorFlow is connected to a TPU."""
    return bool(tf.config.list_logical_devices("TPU"))


def forget_devices() -> None:
    """Makes `has_gpu` and `has_tpu` query again, after new devices are connected."""
    has_gpu.cache_clear()
    has_tpu.cache_clear()


def lacks_bfloat16() -> bool:
    """Whether a graph runs on a processor without instructions for bfloat16, as far as Linux tells:
    there bfloat16 saves memory, but no time.
    """
    if has_gpu() or has_tpu() or not _CPU_INFO.exists():
        return False
    return _BFLOAT16_INSTRUCTIONS.isdisjoint(_CPU_INFO.read_text(encoding="utf-8").split())


def is_for_tpu(strategy: tf.distribute.Strategy) -> bool:
    """Whether a strategy is one of TensorFlow's two for TPUs, whose classes are not related."""
    return isinstance(strategy, (tf.distribute.TPUStrategy, tf.distribute.experimental.TPUStrategy))


def shapes_must_be_static() -> bool:
    """Whether the graph that is being made is for XLA or a TPU."""
    if is_for_tpu(tf.distribute.get_strategy()):
        return True
    graph = tf.compat.v1.get_default_graph()
    # tf.function(jit_compile=True) marks an outer graph, which no public API reports.
    while graph is not None:
        context = graph._get_control_flow_context()
        while context is not None:
            if context.IsXLAContext():
                return True
            context = context.outer_context
        graph = getattr(graph, "outer_graph", None)
    return False


def packs_here() -> bool:
    """Whether `packed=None` leaves padding out of the graph that is being made."""
    # Not under XLA or on TPUs, whose shapes must not depend on values, and not on GPUs, which would
    # wait for the host to count the rows, and compile again for every new number. A tf.function
    # that was traced outside XLA and is called in a jit_compile=True one keeps the earlier choice,
    # which TensorFlow 2.15 cannot compile ("equality of two dimensions"): the remedy is a model
    # made with packed=False.
    return not (shapes_must_be_static() or has_gpu())


def refuse_static_shapes() -> None:
    """Raises UserError in a graph for XLA or a TPU, where a packed model cannot be computed."""
    if shapes_must_be_static():
        raise UserError(
            "packed=True makes shapes depend on the amount of padding; jit_compile=True and TPUs "
            "need fixed shapes. Make the model with packed=False, or without packed."
        )
