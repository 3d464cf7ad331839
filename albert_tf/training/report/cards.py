"""The start-up card of a run: its model, devices and batches, before the first step."""

from __future__ import annotations

import math
from collections.abc import Mapping

import tensorflow as tf

from albert_tf.analysis.costs import training_bytes
from albert_tf.keras_compat import keras
from albert_tf.machine import fast_switch
from albert_tf.machine.targets import packs_here


def print_start(
    title: str,
    model: keras.Model,
    batch_size: int,
    max_seq_length: int,
    figures: Mapping[str, str],
    num_micro_batches: int,
) -> None:
    """Prints the card of a run: a title, then figures of the model and its batches, and `figures`.
    B is over all replicas; each computes its share in `num_micro_batches` parts.
    """
    parts, strategy = _parameters_by_part(model), model.distribute_strategy
    replicas = strategy.num_replicas_in_sync
    at_once = math.ceil(batch_size / (replicas * num_micro_batches))
    memory = training_bytes(model.config, sum(parts.values()), at_once, max_seq_length)
    by_part = ", ".join(f"{name} {size:,}" for name, size in parts.items())
    packed = packs_here() if model.encoder.packed is None else model.encoder.packed
    fast = "on" if fast_switch.is_on() else "off"
    figures = {
        "parameters": f"{sum(parts.values()):,} ({by_part})",
        "devices": f"{_name_of(strategy)}, replicas: {replicas}",
        "precision": model.dtype_policy.name,
        "execution": f"--fast={fast} --packed={str(packed).lower()}",
        "memory of a replica": f"about {memory / 2**30:.1f} GiB",
        "tokens per update": f"{batch_size * max_seq_length:,} ({batch_size} x {max_seq_length})",
        **figures,
    }
    width = max(map(len, figures))
    lines = [f"  {name:<{width}}  {value}" for name, value in figures.items()]
    print(title, *lines, sep="\n", flush=True)


def _name_of(strategy: tf.distribute.Strategy) -> str:
    """The public name of a strategy; some of TensorFlow's classes have internal names."""
    name = type(strategy).__name__
    others = {
        "CollectiveAllReduceStrategy": "MultiWorkerMirroredStrategy",
        "_DefaultDistributionStrategy": "TensorFlow's choice",
    }
    return others.get(name, name)


def _parameters_by_part(model: keras.Model) -> dict[str, int]:
    """Numbers of trainable parameters by part: {"encoder": ..., "masked_lm": ...}."""
    parts: dict[str, int] = {}
    for variable in model.trainable_variables:
        part = variable.name.split("/")[0]
        parts[part] = parts.get(part, 0) + variable.shape.num_elements()
    return parts
