"""The optimizer of a run, made from a dataclass of settings."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.machine.targets import is_for_tpu
from albert_tf.optimization import (
    LAMB,
    AdamW,
    Muon,
    WarmupConstantDecay,
    WarmupPolynomialDecay,
    addons_lamb,
    layerwise_factors,
)
from albert_tf.training.settings import OptimizerSettings
from albert_tf.training.steps import skip_bad_updates


def make_optimizer(
    settings: OptimizerSettings, config: AlbertConfig, num_train_steps: int
) -> keras.optimizers.Optimizer:
    """The optimizer for a model; its rate is 0 after `num_train_steps` updates."""
    schedule = _make_schedule(settings, num_train_steps)
    clipnorm = settings.global_clipnorm or None  # None does not clip.
    common: dict[str, Any] = dict(
        weight_decay_rate=settings.weight_decay_rate,
        global_clipnorm=clipnorm,
        beta_1=settings.beta_1,
        beta_2=settings.beta_2,
        epsilon=settings.epsilon,
    )
    layer_decay = settings.layerwise_learning_rate_decay
    factors = layerwise_factors(config, layer_decay) if layer_decay != 1.0 else []
    if settings.optimizer == "tfa_lamb":
        for name, default in (("layerwise_learning_rate_decay", 1.0), ("ema_decay", 0.0)):
            if (value := getattr(settings, name)) != default:
                raise UserError(
                    f"--{name}={value} does not work with --optimizer=tfa_lamb. Use lamb, adamw or "
                    "muon."
                )
        return addons_lamb(schedule, **common)
    common.update(bias_correction=settings.bias_correction, learning_rate_factors=factors)
    if settings.ema_decay:
        common.update(use_ema=True, ema_momentum=settings.ema_decay)
    if settings.optimizer == "muon":
        return Muon(schedule, settings.muon_momentum, **common)
    return {"lamb": LAMB, "adamw": AdamW}[settings.optimizer](schedule, **common)


def _make_schedule(
    settings: OptimizerSettings, num_train_steps: int
) -> keras.optimizers.schedules.LearningRateSchedule:
    """The learning rate as a function of the step."""
    common = (settings.learning_rate, num_train_steps, settings.num_warmup_steps)
    if settings.schedule == "wsd":
        return WarmupConstantDecay(*common, settings.decay_share)
    return WarmupPolynomialDecay(*common, settings.learning_rate_power, settings.decay_after_warmup)


def guard_updates(
    optimizer: keras.optimizers.Optimizer,
    strategy: tf.distribute.Strategy,
    precision: str,
    max_bad_steps: int,
) -> keras.optimizers.Optimizer:
    """The optimizer with loss scaling if the precision, a dtype policy, needs it; otherwise, with
    `max_bad_steps`, one that skips updates that are not finite. On TPUs both raise UserError.
    """
    is_half = precision == "mixed_float16"
    if is_for_tpu(strategy) and (is_half or max_bad_steps):
        raise UserError(
            f"--precision={precision} with --max_bad_steps={max_bad_steps} does not work with "
            "--distribution=tpu. Use mixed_bfloat16 and 0."
        )
    if is_half:
        return keras.mixed_precision.LossScaleOptimizer(optimizer)
    return skip_bad_updates(optimizer) if max_bad_steps else optimizer
