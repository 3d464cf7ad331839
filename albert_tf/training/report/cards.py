"""What a run says of itself: a card before the first step, a table of figures after the last."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from albert_tf.costs import pretraining_flops_per_token, training_bytes
from albert_tf.keras_compat import keras
from albert_tf.layers import fast
from albert_tf.layers.packing import packs_here
from albert_tf.models import AlbertClassifier, AlbertPretrainer


def print_pretraining_start(
    model: AlbertPretrainer,
    strategy: tf.distribute.Strategy,
    manifest: dict[str, Any],
    batch_size: int,
    num_train_steps: int,
) -> None:
    """The card of a pre-training run; `manifest` is that of the training records."""
    config, length = model.config, manifest["max_seq_length"]
    flops = pretraining_flops_per_token(config, length, manifest["max_predictions"])
    passes = "not counted (--train_text)"
    if manifest["num_records"]:
        passes = f"{num_train_steps * batch_size / manifest['num_records']:.1f}"
    _print_card(
        "Pre-training",
        {
            **_model_rows(model, strategy, batch_size, length),
            "training operations": f"{flops / 1e6:,.1f} MFLOP a token",
            "passes over the data": passes,
            "expected first loss": f"{math.log(config.vocab_size) + math.log(2):.2f} (ln V + ln 2)",
        },
    )


def print_classification_start(
    model: AlbertClassifier,
    strategy: tf.distribute.Strategy,
    num_examples: int,
    sequence_length: int,
    batch_size: int,
    num_train_steps: int,
) -> None:
    """The card of a fine-tuning run; `num_examples` are those to train on."""
    passes = num_train_steps * batch_size / num_examples
    _print_card(
        "Fine-tuning",
        {
            **_model_rows(model, strategy, batch_size, sequence_length),
            "updates": f"{num_train_steps} ({passes:.1f} passes over {num_examples} examples)",
            "expected first loss": f"{math.log(model.num_classes):.2f} (ln {model.num_classes})",
        },
    )


def print_comparison(title: str, rows: dict[str, tuple[float, float, str]]) -> None:
    """Figures beside baselines; `rows`: name -> (figure, baseline, what the baseline is)."""
    print(f"{title}\n  {'':<26} {'model':>8} {'baseline':>9}")
    for name, (figure, baseline, kind) in rows.items():
        print(f"  {name:<26} {figure:8.4f} {baseline:9.4f}  ({kind})")


def _model_rows(
    model: keras.Model, strategy: tf.distribute.Strategy, batch_size: int, sequence_length: int
) -> dict[str, str]:
    parts = _parameters_by_part(model)
    replicas = strategy.num_replicas_in_sync
    memory = training_bytes(
        model.config, sum(parts.values()), math.ceil(batch_size / replicas), sequence_length
    )
    by_part = ", ".join(f"{name} {size:,}" for name, size in parts.items())
    return {
        "parameters": f"{sum(parts.values()):,} ({by_part})",
        "devices": f"{_name_of(strategy)}, replicas: {replicas}",
        "precision": keras.mixed_precision.global_policy().name,
        "execution": _execution(model),
        "memory of a replica": f"about {memory / 2**30:.1f} GiB",
        "tokens per update": f"{batch_size * sequence_length:,} ({batch_size} x {sequence_length})",
    }


def _execution(model: keras.Model) -> str:
    """How layers are computed, as the flags say it."""
    packed = packs_here() if model.encoder.packed is None else model.encoder.packed
    return f"--fast={'on' if fast.is_on() else 'off'} --packed={str(packed).lower()}"


def _name_of(strategy: tf.distribute.Strategy) -> str:
    """The public name; TensorFlow's class for several workers has another."""
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return "MultiWorkerMirroredStrategy"
    return type(strategy).__name__


def _parameters_by_part(model: keras.Model) -> dict[str, int]:
    parts: dict[str, int] = {}
    for variable in model.trainable_variables:
        part = variable.name.split("/")[0]
        parts[part] = parts.get(part, 0) + variable.shape.num_elements()
    return parts


def _print_card(title: str, rows: dict[str, str]) -> None:
    width = max(map(len, rows))
    print(
        f"{title}\n" + "\n".join(f"  {name:<{width}}  {value}" for name, value in rows.items()),
        flush=True,
    )
