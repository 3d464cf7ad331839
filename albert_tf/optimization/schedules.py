"""The learning rate as a function of the step."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras


@keras.utils.register_keras_serializable("albert_tf")
class WarmupPolynomialDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then polynomial decay to 0 (google-research/albert, optimization.py), as a
    Keras schedule. `power` 1 is a linear decay.

    Peak 1, 4 steps of warm-up, 8 in all: 0 .25 .5 .75 .5 .375 .25 .125; with `decay_after_warmup`
    0 .25 .5 .75 1 .75 .5 .25.
    """

    # The reference's quirks: the first update of a warm-up has rate 0, and the decay begins at step
    # 0 too, so that the rate drops from `peak` to peak * (1 - warmup / train) after the warm-up.

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
                f"{num_train_steps}. Lower it, or train longer."
            )
        self.peak = peak
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps
        self.power = power
        self.decay_after_warmup = decay_after_warmup

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        step = tf.cast(step, tf.float32)
        start = self.num_warmup_steps if self.decay_after_warmup else 0
        length = max(self.num_train_steps - start, 1)
        done = tf.clip_by_value((step - start) / length, 0.0, 1.0)
        decayed = self.peak * tf.pow(1.0 - done, self.power)
        if self.num_warmup_steps == 0:
            return decayed
        risen = self.peak * step / self.num_warmup_steps
        return tf.where(step < self.num_warmup_steps, risen, decayed)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return dict(vars(self))


@keras.utils.register_keras_serializable("albert_tf")
class WarmupConstantDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up from 0, a constant rate, and a linear decay to 0, as a Keras schedule ("wsd").

    Peak 1, 2 steps of warm-up, 10 in all, a `decay_share` of 0.4: 0 .5 1 1 1 1 1 .75 .5 .25.
    """

    # Up to `decay_start` the rate does not depend on the length of training. So a run that is made
    # longer from there equals, bit by bit, one that was longer from the start.

    def __init__(
        self, peak: float, num_train_steps: int, num_warmup_steps: int = 0, decay_share: float = 0.2
    ) -> None:
        super().__init__()
        if not 0 <= decay_share <= 1:
            raise UserError(f"decay_share {decay_share} does not lie between 0 and 1.")
        self.decay_start = decay_start(num_train_steps, decay_share)
        if not 0 <= num_warmup_steps <= self.decay_start:
            raise UserError(
                f"num_warmup_steps {num_warmup_steps} does not lie between 0 and the start of the "
                f"decay, step {self.decay_start} of {num_train_steps}. Lower it or decay_share, or "
                "train longer."
            )
        self.peak = peak
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps
        self.decay_share = decay_share

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        step = tf.cast(step, tf.float32)
        length = max(self.num_train_steps - self.decay_start, 1)
        left = tf.clip_by_value((self.num_train_steps - step) / length, 0.0, 1.0)
        # `max` only avoids a division by 0: without a warm-up `risen` is not used.
        risen = tf.minimum(step / max(self.num_warmup_steps, 1), 1.0)
        return self.peak * (left if self.num_warmup_steps == 0 else tf.minimum(risen, left))

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {
            "peak": self.peak,
            "num_train_steps": self.num_train_steps,
            "num_warmup_steps": self.num_warmup_steps,
            "decay_share": self.decay_share,
        }


def decay_start(num_train_steps: int, decay_share: float) -> int:
    """The step from which the rate of WarmupConstantDecay falls: 1,000 and 0.2 give 800."""
    return num_train_steps - round(num_train_steps * decay_share)


class Recipe(NamedTuple):
    """The settings of a run that depend on its batch size; the learning rate is the highest."""

    learning_rate: float
    num_train_steps: int
    num_warmup_steps: int


def scale_recipe(recipe: Recipe, made_for: int, batch_size: int) -> Recipe:
    """A recipe for batches of `made_for` sequences, scaled to another size: as many sequences in
    total, and the rate scaled by the square root (LAMB: You et al., ICLR 2020, section 4.2).

    Rate 0.002, 1,000 updates, 100 of warm-up, made for 4,096, at 1,024: 0.001, 4,000, 400.
    """
    ratio = batch_size / made_for
    num_train_steps = max(1, round(recipe.num_train_steps / ratio))
    return Recipe(
        recipe.learning_rate * math.sqrt(ratio),
        num_train_steps,
        min(num_train_steps, round(recipe.num_warmup_steps / ratio)),
    )
