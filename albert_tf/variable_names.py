"""Names of variables, by which checkpoints store them and optimizers treat them."""

from __future__ import annotations

import tensorflow as tf


def variable_name(variable: tf.Variable) -> str:
    """The name of a model's variable, without TensorFlow's output suffix.

    "encoder/pooler/kernel:0" -> "encoder/pooler/kernel"
    """
    return variable.name.split(":")[0]
