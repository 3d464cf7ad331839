"""The devices and the precision of a run, chosen before any model is made."""

from __future__ import annotations

import sys
from typing import NamedTuple

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.machine import fast_switch
from albert_tf.machine.targets import (
    forget_devices,
    lacks_bfloat16,
    packs_here,
    shapes_must_be_static,
)
from albert_tf.training.settings import DeviceSettings
from albert_tf.training.strategy import make_strategy


class Devices(NamedTuple):
    """Devices that are ready for a model."""

    strategy: tf.distribute.Strategy  # Models are made in its scope.
    packed: bool  # For the constructors of models.
    is_fast: bool  # Whether the fast form is on, see fast_switch.py.


def prepare_devices(settings: DeviceSettings) -> Devices:
    """Sets determinism, precision and `fast` for this process, and makes the strategy; a UserError
    if settings exclude each other, or need XLA and it cannot compile.
    """
    if settings.deterministic:
        tf.config.experimental.enable_op_determinism()
    strategy = make_strategy(settings.distribution, settings.tpu)
    forget_devices()  # There may be a TPU now.
    keras.mixed_precision.set_global_policy(settings.precision)
    if settings.precision == "mixed_bfloat16" and lacks_bfloat16():
        print(
            "--precision=mixed_bfloat16 saves memory here, but no time: this processor has no "
            "instructions for it (avx512_bf16, amx_bf16). Use --precision=float32 if it fits.",
            file=sys.stderr,
            flush=True,
        )
    if settings.deterministic:
        keras.utils.set_random_seed(settings.seed)  # Random operations are refused without one.
    if settings.jit_compile and (error := fast_switch.xla_error()):
        raise UserError(
            f"--jit_compile needs XLA, which cannot compile on this machine: {error}. Leave it out."
        )
    is_fast = fast_switch.choose(settings.fast)
    with strategy.scope():
        is_static = settings.jit_compile or shapes_must_be_static()
        is_packed = settings.packed == "true"
        if settings.packed == "auto":
            is_packed = packs_here() and not is_static
    if is_packed and is_static:
        raise UserError(
            "--packed=true does not work with --jit_compile or --distribution=tpu, which need "
            "fixed shapes. Use --packed=auto."
        )
    return Devices(strategy, is_packed, is_fast)
