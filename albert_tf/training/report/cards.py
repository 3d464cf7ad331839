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
    figures = {
        **_model_figures(model, batch_size, max_seq_length, num_micro_batches),
        **figures,
    }
    width = max(map(len, figures))
    lines = [f"  {name:<{width}}  {value}" for name, value in figures.items()]
    print(title, *lines, sep="\n", flush=True)


def _model_figures(
    model: keras.Model, batch_size: int, sequence_length: int, num_micro_batches: int
) -> dict[str, str]:
    """Figures of the model, its devices and its batches, by name."""
    parts, strategy = _parameters_by_part(model), model.distribute_strategy
    replicas = strategy.num_replicas_in_sync
    at_once = math.ceil(batch_size / (replicas * num_micro_batches))
    memory = training_bytes(model.config, sum(parts.values()), at_once, sequence_length)
    by_part = ", ".join(f"{name} {size:,}" for name, size in parts.items())
    return {
        "parameters": f"{sum(parts.values()):,} ({by_part})",
        "devices": f"{_name_of(strategy)}, replicas: {replicas}",
        "precision": model.dtype_policy.name,
        "execution": _execution(model),
        "memory of a replica": f"about {memory / 2**30:.1f} GiB",
        "tokens per update": f"{batch_size * sequence_length:,} ({batch_size} x {sequence_length})",
    }


def _execution(model: keras.Model) -> str:
    """The flags --fast and --packed with the values that hold for a model."""
    packed = packs_here() if model.encoder.packed is None else model.encoder.packed
    return f"--fast={'on' if fast_switch.is_on() else 'off'} --packed={str(packed).lower()}"


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
