"""What the flags of `flags.define_device_flags` stand for on this machine."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.flags import FLAGS
from albert_tf.keras_compat import keras
from albert_tf.layers import fast
from albert_tf.layers.packing import packs_here, shapes_must_be_static
from albert_tf.training import make_strategy


def prepare_devices() -> tf.distribute.Strategy:
    """The strategy of the device flags, and all that is decided before there is a model.

    That is determinism, precision, and what `auto` of --fast and --packed means here; these two
    flags say so afterwards.

    Raises:
      UserError: flags that do not go together, or that need XLA where it cannot compile.
    """
    if FLAGS.deterministic:
        tf.config.experimental.enable_op_determinism()
    strategy = make_strategy(FLAGS.distribution, FLAGS.tpu)
    keras.mixed_precision.set_global_policy(FLAGS.precision)
    if FLAGS.deterministic:
        keras.utils.set_random_seed(FLAGS.seed)  # Random operations are refused without one.
    if FLAGS.jit_compile and (error := fast.xla_error()):
        raise UserError(
            f"--jit_compile needs XLA, which cannot compile on this machine: {error}. Leave it out."
        )
    FLAGS.fast = "on" if fast.choose(FLAGS.fast) else "off"
    with strategy.scope():
        is_static = FLAGS.jit_compile or shapes_must_be_static()
        if FLAGS.packed == "auto":
            FLAGS.packed = "true" if packs_here() and not is_static else "false"
    if is_packed() and is_static:
        raise UserError(
            "--packed=true does not go with --jit_compile and --distribution=tpu, whose shapes are "
            "known beforehand. Use --packed=auto."
        )
    return strategy


def is_packed() -> bool:
    """--packed, once `prepare_devices` has resolved it."""
    return FLAGS.packed == "true"
