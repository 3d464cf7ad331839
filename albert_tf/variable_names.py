"""Names of variables, which checkpoints and optimizers use as keys."""

from __future__ import annotations

import collections
from collections.abc import Sequence

import tensorflow as tf


def variable_name(variable: tf.Variable) -> str:
    """The name of a model's variable, without TensorFlow's output suffix.

    "encoder/pooler/kernel:0" -> "encoder/pooler/kernel"
    """
    return variable.name.split(":")[0]


def distinct(names: Sequence[str]) -> list[str]:
    """The names, made unique: "a", "b", "a" -> "a", "b", "a_1"."""
    # Variables are named after layers, not after models, so a generator and a detector that are
    # trained together have variables with the same names.
    seen: collections.Counter[str] = collections.Counter()
    found = []
    for name in names:
        found.append(f"{name}_{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found
