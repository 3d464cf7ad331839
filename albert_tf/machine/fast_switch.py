"""The switch for the fast form of models, which is tuned for CPUs and needs XLA."""

# When it is off, the same formulas run as ordinary operations, also for `recompute`: nothing is
# compiled by XLA, and a batch goes through the layers as one stream. Values and gradients are equal
# up to rounding, except with dropout on packed rows: the fast form increases their number to a
# multiple, and so draws other masks.

from __future__ import annotations

import contextlib
import contextvars
import functools
import platform
import sys
from collections.abc import Iterator

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.machine.targets import has_gpu, has_tpu

MODES = ("auto", "on", "off")

# For the whole process, not for a context: a MirroredStrategy traces its replicas in separate
# threads, which would not see the context of the thread that made them. None until `choose` or
# `is_on` is first called.
_chosen: bool | None = None
_SWITCHED_OFF = contextvars.ContextVar("switched_off", default=False)


def choose(mode: str = "auto") -> bool:
    """Turns the fast form on or off for what is traced from now on; returns whether it is on.

    Args:
      mode: "on", "off", or "auto", which is the default: on for the CPU of a Linux machine if XLA
        compiles there; off, with one line on stderr, if it does not; off on Macs, GPUs and TPUs,
        where small compiled functions gain little and are known to fail.

    Raises:
      UserError: "on", but XLA cannot compile.
    """
    global _chosen
    if mode not in MODES:
        raise UserError(f"--fast={mode} is not one of {', '.join(MODES)}.")
    wanted = mode == "on" or (mode == "auto" and _is_linux_on_cpu())
    error = xla_error() if wanted else ""
    if error and mode == "on":
        raise UserError(
            f"--fast=on needs XLA, which cannot compile on this machine: {error}. Use --fast=off, "
            "which computes the same with ordinary operations."
        )
    if error:
        line = f"--fast=auto is off: XLA cannot compile on this machine: {error}"
        print(line, file=sys.stderr, flush=True)
    _chosen = wanted and not error
    return _chosen


def is_on() -> bool:
    """Whether fast operations are used in graphs that this thread traces from now on."""
    if _SWITCHED_OFF.get():
        return False
    return choose() if _chosen is None else _chosen


def suits_cpu() -> bool:
    """Whether graphs traced from now on may be arranged for a CPU: fast operations are used, and
    there is no accelerator, which such an arrangement would slow down.
    """
    return is_on() and not (has_gpu() or has_tpu())


@contextlib.contextmanager
def switched_off() -> Iterator[None]:
    """Off for what this thread traces inside: for exports to servers that may lack XLA."""
    token = _SWITCHED_OFF.set(True)
    try:
        yield
    finally:
        _SWITCHED_OFF.reset(token)


def _is_linux_on_cpu() -> bool:
    return platform.system() == "Linux" and not (has_gpu() or has_tpu())


@functools.cache
def xla_error() -> str:
    """XLA's error if it cannot compile on this machine, in one line; empty if it can."""
    if has_tpu():  # Its host compiles nothing itself.
        return ""
    try:
        with tf.init_scope():  # The caller may be tracing a graph, and this has to run now.
            tf.function(_trial, jit_compile=True, autograph=False)(tf.ones([8]))
    except (tf.errors.OpError, RuntimeError, ValueError) as error:
        message = str(getattr(error, "message", None) or error).strip()
        return message.splitlines()[0] if message else type(error).__name__
    return ""


def _trial(x: tf.Tensor) -> tf.Tensor:
    """A function that XLA cannot compile if a GPU's software is incomplete."""
    # There tanh needs libdevice, and any kernel needs ptxas.
    return tf.reduce_sum(tf.tanh(x))
