"""What LAMB and AdamW have in common: moments, decay inside the update, exclusion by name, dense
clipping.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from albert_tf.keras_compat import keras

# The reference decays neither biases nor layer normalization.
DEFAULT_EXCLUSIONS = ("LayerNorm", "layer_norm", "bias")


def adam_update(
    gradient: tf.Tensor,
    m: tf.Tensor,
    v: tf.Tensor,
    weights: tf.Tensor,
    *,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    weight_decay: float,
    correction_step: tf.Tensor | None = None,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """One step of Adam with decoupled decay inside the update (google-research/albert,
    optimization.py).

    Args:
      gradient, m, v, weights: float tensors of one shape: gradient, both moments, current weights.
      weight_decay: 0 for variables that are not decayed.
      correction_step: 1-based step for bias correction; None, the reference's way, corrects
        nothing.

    Returns:
      (update, new m, new v); the caller subtracts update times a rate.
    """
    m = beta_1 * m + (1.0 - beta_1) * gradient
    v = beta_2 * v + (1.0 - beta_2) * tf.square(gradient)
    m_hat, v_hat = m, v
    if correction_step is not None:
        m_hat = m / (1.0 - tf.pow(beta_1, correction_step))
        v_hat = v / (1.0 - tf.pow(beta_2, correction_step))
    update = m_hat / (tf.sqrt(v_hat) + epsilon) + weight_decay * weights
    return update, m, v


class AdamFamily(keras.optimizers.Optimizer):
    """Base of both optimizers; a subclass says how far a variable moves along its update.

    Gradients are made dense and summed over replicas before they are clipped by their global norm,
    so that clipping does not depend on the number of replicas or on how embeddings are looked up.
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule,
        weight_decay_rate: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        bias_correction: bool = False,
        exclude_from_weight_decay: Sequence[str] = DEFAULT_EXCLUSIONS,
        learning_rate_factors: Sequence[tuple[str, float]] = (),
        global_clipnorm: float | None = 1.0,
        name: str = "AdamFamily",
        **kwargs: Any,
    ) -> None:
        """Args:
        learning_rate: a number or a schedule of the 0-based step.
        weight_decay_rate: multiplied by the weights and added to the update.
        bias_correction: divide the moments by 1 - beta^t, which the reference does not do.
        exclude_from_weight_decay: regular expressions searched in variable names.
        learning_rate_factors: pairs of a regular expression and a factor for the variables in
          whose names it is found; see layerwise.py.
        global_clipnorm: largest global norm of the gradients; None does not clip.
        """
        super().__init__(name=name, global_clipnorm=global_clipnorm, jit_compile=False, **kwargs)
        self._learning_rate = self._build_learning_rate(learning_rate)
        self.weight_decay_rate = weight_decay_rate
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction
        self.exclude_from_weight_decay_patterns = tuple(exclude_from_weight_decay)
        self.learning_rate_factors = tuple(map(tuple, learning_rate_factors))

    def build(self, var_list: Sequence[tf.Variable]) -> None:
        """Makes both moments of every variable."""
        super().build(var_list)
        if getattr(self, "_built", False):
            return
        self._m = [self.add_variable_from_reference(variable, "m") for variable in var_list]
        self._v = [self.add_variable_from_reference(variable, "v") for variable in var_list]
        self._built = True

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[tf.Tensor, tf.Variable]], *args: Any, **kwargs: Any
    ):
        """Makes sparse gradients dense first: the norm of rows that are not summed is not the
        gradient's norm.
        """
        dense = [
            (gradient if gradient is None else tf.convert_to_tensor(gradient), variable)
            for gradient, variable in grads_and_vars
        ]
        return super().apply_gradients(dense, *args, **kwargs)

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """Moves one variable."""
        index = self._index_dict[self._var_key(variable)]
        name = variable.name.split(":")[0]
        update, m, v = adam_update(
            gradient,
            self._m[index],
            self._v[index],
            variable,
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            epsilon=self.epsilon,
            weight_decay=self.weight_decay_rate if self.is_decayed(name) else 0.0,
            correction_step=tf.cast(self.iterations + 1, variable.dtype)
            if self.bias_correction
            else None,
        )
        self._m[index].assign(m)
        self._v[index].assign(v)
        rate = tf.cast(self.learning_rate, variable.dtype) * self.rate_factor(name)
        variable.assign_sub(rate * self.scale(update, variable, name) * update)

    def rate_factor(self, name: str) -> float:
        """What the learning rate is multiplied by for the variable of that name."""
        factors = self.learning_rate_factors
        return next((factor for pattern, factor in factors if re.search(pattern, name)), 1.0)

    def scale(self, update: tf.Tensor, variable: tf.Variable, name: str) -> tf.Tensor | float:
        """The factor beside the learning rate for one variable."""
        return 1.0

    def is_decayed(self, name: str) -> bool:
        """Whether weight decay applies to the variable of that name."""
        return not any(
            re.search(pattern, name) for pattern in self.exclude_from_weight_decay_patterns
        )

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.update(
            learning_rate=self._serialize_hyperparameter(self._learning_rate),
            weight_decay_rate=self.weight_decay_rate,
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            epsilon=self.epsilon,
            bias_correction=self.bias_correction,
            exclude_from_weight_decay=list(self.exclude_from_weight_decay_patterns),
            learning_rate_factors=[list(pair) for pair in self.learning_rate_factors],
        )
        return {
            key: value
            for key, value in config.items()
            if key not in ("is_legacy_optimizer", "jit_compile")
        }
