"""Names of variables, by which checkpoints store them and optimizers treat them."""

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
    """Names of which none comes twice: "a", "b", "a" -> "a", "b", "a_1"."""
    # Variables are named after layers, not after models, so a generator and the detector that is
    # trained together with it have variables of the same names.
    seen: collections.Counter[str] = collections.Counter()
    found = []
    for name in names:
        found.append(f"{name}_{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found
