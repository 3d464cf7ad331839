"""The learning rate as a function of the step."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras


def warmup_polynomial_decay(
    step: tf.Tensor, peak: float, num_train_steps: int, num_warmup_steps: int, power: float = 1.0
) -> tf.Tensor:
    """Linear warm-up, then polynomial decay to 0 (google-research/albert, optimization.py).

    The step counts from 0 and the decay from step 0: the first update has rate 0, and the rate
    drops from `peak` to peak * (1 - warmup / train) where the warm-up ends.

    Args:
      step: scalar, 0-based.
      peak: the highest rate.
    """
    step = tf.cast(step, tf.float32)
    done = tf.minimum(step / num_train_steps, 1.0)
    decayed = peak * tf.pow(1.0 - done, power)
    if num_warmup_steps == 0:
        return decayed
    return tf.where(step < num_warmup_steps, peak * step / num_warmup_steps, decayed)


class WarmupPolynomialDecay(keras.optimizers.schedules.LearningRateSchedule):
    """`warmup_polynomial_decay` as a Keras schedule."""

    def __init__(
        self, peak: float, num_train_steps: int, num_warmup_steps: int = 0, power: float = 1.0
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

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        return warmup_polynomial_decay(step, **self.get_config())

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "num_train_steps": self.num_train_steps,
            "num_warmup_steps": self.num_warmup_steps,
            "power": self.power,
        }
