"""TensorFlow Addons' LAMB, with the interface of this project's optimizers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.optimization.base import DEFAULT_EXCLUSIONS


def addons_lamb(
    learning_rate: float | keras.optimizers.schedules.LearningRateSchedule,
    weight_decay_rate: float = 0.01,
    global_clipnorm: float | None = 1.0,
    **settings: Any,
) -> keras.optimizers.legacy.Optimizer:
    """tfa.optimizers.LAMB, which computes the same as LAMB(bias_correction=True); a UserError if
    Addons is not installed. settings: Addons' own, such as `beta_1`.
    """
    try:
        import tensorflow_addons as tfa
    except ImportError:
        raise UserError(
            "tfa_lamb needs TensorFlow Addons, which ends at TensorFlow 2.15; this is "
            f"{tf.__version__}. Use lamb with bias correction, which computes the same."
        ) from None

    class AddonsLAMB(tfa.optimizers.LAMB):
        """Adds `build` and dense, already summed gradients."""

        def build(self, var_list: Sequence[tf.Variable]) -> None:
            """Makes both moments of every variable."""
            self.iterations  # noqa: B018  Made on first access.
            self._create_all_weights(var_list)

        def apply_gradients(
            self,
            grads_and_vars: Iterable[tuple[tf.Tensor, tf.Variable]],
            skip_gradients_aggregation: bool = False,
            **kwargs: Any,
        ):
            """Applies gradients, with the argument that Keras's newer optimizers have."""
            kwargs.setdefault("experimental_aggregate_gradients", not skip_gradients_aggregation)
            return super().apply_gradients(grads_and_vars, **kwargs)

    return AddonsLAMB(
        learning_rate,
        weight_decay=weight_decay_rate,
        exclude_from_weight_decay=list(DEFAULT_EXCLUSIONS),
        global_clipnorm=global_clipnorm,
        **settings,
    )
