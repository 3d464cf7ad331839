"""The optimizer of a run, made from a dataclass of settings; recipes for other batch sizes."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.optimization import (
    LAMB,
    AdamW,
    Recipe,
    WarmupConstantDecay,
    WarmupPolynomialDecay,
    addons_lamb,
    decay_start,
    layerwise_factors,
    scale_recipe,
)
from albert_tf.targets import is_for_tpu
from albert_tf.training.steps import skip_bad_updates

OPTIMIZERS = ("lamb", "adamw", "tfa_lamb")
SCHEDULES = ("polynomial", "wsd")


@dataclasses.dataclass(frozen=True)
class OptimizerSettings:
    """An optimizer and its learning rate.

    Attributes:
      optimizer: one of OPTIMIZERS; lamb and adamw are google-research/albert's, tfa_lamb is
        TensorFlow Addons'.
      learning_rate: the highest, reached at the end of the warm-up.
      num_warmup_steps: updates of the warm-up.
      schedule: one of SCHEDULES; wsd is warm-up, constant, decay.
      decay_share: share of the updates in which the rate of wsd falls.
      beta_1, beta_2: shares of the old moments in the new ones.
      epsilon: added to the root of the second moment.
      learning_rate_power: power of the decay of polynomial; 1 is linear.
      decay_after_warmup: whether polynomial decays from the end of the warm-up, not from step 0.
      bias_correction: whether the moments of lamb and adamw are corrected, unlike the reference's.
      layerwise_learning_rate_decay: factor of the rate for each layer further down.
      weight_decay_rate: factor of the weights in the update.
      global_clipnorm: largest global norm of the gradient; 0 turns clipping off.
    """

    optimizer: str
    learning_rate: float
    num_warmup_steps: int = 0
    learning_rate_power: float = 1.0
    decay_after_warmup: bool = False
    bias_correction: bool = False
    layerwise_learning_rate_decay: float = 1.0
    weight_decay_rate: float = 0.01
    global_clipnorm: float = 1.0
    schedule: str = "polynomial"
    decay_share: float = 0.2
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise UserError(f"--optimizer={self.optimizer} is not one of {', '.join(OPTIMIZERS)}.")
        if self.schedule not in SCHEDULES:
            raise UserError(f"--schedule={self.schedule} is not one of {', '.join(SCHEDULES)}.")
        if not 0 <= self.decay_share <= 1:
            raise UserError(f"--decay_share={self.decay_share} does not lie between 0 and 1.")

    def decay_start(self, num_train_steps: int) -> int | None:
        """The step from which the rate of wsd falls; None with another schedule."""
        return decay_start(num_train_steps, self.decay_share) if self.schedule == "wsd" else None


def make_optimizer(
    settings: OptimizerSettings, config: AlbertConfig, num_train_steps: int
) -> keras.optimizers.Optimizer:
    """The optimizer for a model.

    Args:
      settings: its kind and its numbers.
      config: of the model.
      num_train_steps: updates until the rate is 0.

    Raises:
      UserError: settings that do not go together.
    """
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
        if factors:
            raise UserError(
                f"--layerwise_learning_rate_decay={layer_decay} does not go with "
                "--optimizer=tfa_lamb. Use lamb or adamw."
            )
        return addons_lamb(schedule, **common)
    kind = {"lamb": LAMB, "adamw": AdamW}[settings.optimizer]
    return kind(
        schedule, bias_correction=settings.bias_correction, learning_rate_factors=factors, **common
    )


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
    """The optimizer with a scaled loss where the precision needs it; or, with `max_bad_steps`, one
    that leaves out updates that are not finite.

    Args:
      optimizer: the optimizer to wrap.
      strategy: the devices it is for.
      precision: name of the model's dtype policy.
      max_bad_steps: how many updates may be left out; 0: none is.

    Returns:
      `optimizer`, or a LossScaleOptimizer around it.

    Raises:
      UserError: float16 or `max_bad_steps` on a TPU.
    """
    is_half = precision == "mixed_float16"
    if is_for_tpu(strategy) and (is_half or max_bad_steps):
        raise UserError(
            f"--precision={precision} with --max_bad_steps={max_bad_steps} does not go with "
            "--distribution=tpu. Use mixed_bfloat16 and 0."
        )
    if is_half:
        return keras.mixed_precision.LossScaleOptimizer(optimizer)
    return skip_bad_updates(optimizer) if max_bad_steps else optimizer


def recipe_for_batch(recipe: Recipe, made_for: int, batch_size: int) -> Recipe:
    """The recipe scaled from batches of `made_for` sequences to `batch_size`, and printed; as it is
    if `made_for` is 0.
    """
    if not made_for or made_for == batch_size:
        return recipe
    scaled = scale_recipe(recipe, made_for, batch_size)
    print(f"recipe for batches of {made_for}, scaled to {batch_size}: {scaled}")
    return scaled
