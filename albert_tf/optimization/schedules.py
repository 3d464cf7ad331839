"""The learning rate as a function of the step."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras


def warmup_polynomial_decay(
    step: tf.Tensor,
    peak: float,
    num_train_steps: int,
    num_warmup_steps: int,
    power: float = 1.0,
    decay_after_warmup: bool = False,
) -> tf.Tensor:
    """Linear warm-up, then polynomial decay to 0 (google-research/albert, optimization.py).

    The step counts from 0, so the first update has rate 0. In the reference the decay begins at
    step 0 too: the rate drops from `peak` to peak * (1 - warmup / train) where the warm-up ends.

    Args:
      step: scalar, 0-based.
      peak: the highest rate.
      power: of the polynomial; 1 is linear.
      decay_after_warmup: decay from the end of the warm-up on, from `peak`.
    """
    step = tf.cast(step, tf.float32)
    start = num_warmup_steps if decay_after_warmup else 0
    done = tf.clip_by_value((step - start) / max(num_train_steps - start, 1), 0.0, 1.0)
    decayed = peak * tf.pow(1.0 - done, power)
    if num_warmup_steps == 0:
        return decayed
    return tf.where(step < num_warmup_steps, peak * step / num_warmup_steps, decayed)


@keras.utils.register_keras_serializable("albert_tf")
class WarmupPolynomialDecay(keras.optimizers.schedules.LearningRateSchedule):
    """`warmup_polynomial_decay` as a Keras schedule."""

    def __init__(
        self,
        peak: float,
        num_train_steps: int,
        num_warmup_steps: int = 0,
        power: float = 1.0,
        decay_after_warmup: bool = False,
    ) -> None:
        super().__init__()
        if not 0 <= num_warmup_steps <= num_train_steps:
            raise UserError(
                f"num_warmup_steps {num_warmup_steps} does not lie between 0 and num_train_steps "
                f"{num_train_steps}."
            )
        self.peak = peak
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps
        self.power = power
        self.decay_after_warmup = decay_after_warmup

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        return warmup_polynomial_decay(step, **self.get_config())

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "num_train_steps": self.num_train_steps,
            "num_warmup_steps": self.num_warmup_steps,
            "power": self.power,
            "decay_after_warmup": self.decay_after_warmup,
        }


class Recipe(NamedTuple):
    """What a batch size decides: learning rate and numbers of updates."""

    learning_rate: float
    num_train_steps: int
    num_warmup_steps: int


def scale_recipe(recipe: Recipe, made_for: int, batch_size: int) -> Recipe:
    """The recipe for another batch size: the same number of sequences, the rate by the square root.

    That rule keeps LAMB's results over batch sizes (You et al., ICLR 2020, section 4.2).

    Args:
      recipe: for batches of `made_for` sequences.
      batch_size: sequences in a batch.
    """
    ratio = batch_size / made_for
    num_train_steps = max(1, round(recipe.num_train_steps / ratio))
    return Recipe(
        recipe.learning_rate * math.sqrt(ratio),
        num_train_steps,
        min(num_train_steps, round(recipe.num_warmup_steps / ratio)),
    )
