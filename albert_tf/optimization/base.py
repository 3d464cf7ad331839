"""What LAMB and AdamW have in common: moments, decay inside the update, exclusion by name, dense
clipping.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf.checkpoints.weights import our_name
from albert_tf.keras_compat import keras
from albert_tf.layers.fast.compiled import compiled as one_kernel

# The reference decays neither biases nor layer normalization.
DEFAULT_EXCLUSIONS = ("LayerNorm", "layer_norm", "bias")


class AdamSettings(NamedTuple):
    """Of one variable's update.

    Attributes:
      weight_decay: 0 for variables that are not decayed.
      corrections: see `bias_corrections`; None, the reference's way, corrects nothing.
    """

    beta_1: float
    beta_2: float
    epsilon: float
    weight_decay: float
    corrections: tuple[tf.Tensor, tf.Tensor] | None


def bias_corrections(step: tf.Tensor, beta_1: float, beta_2: float) -> tuple[tf.Tensor, tf.Tensor]:
    """What Adam divides both moments by after `step` updates; the reference does not."""
    return 1.0 - tf.pow(beta_1, step), 1.0 - tf.pow(beta_2, step)


def adam_update(
    m: tf.Tensor, v: tf.Tensor, weights: tf.Tensor, settings: AdamSettings
) -> tf.Tensor:
    """Adam's update with decoupled decay inside (google-research/albert, optimization.py).

    Args:
      m, v, weights: float tensors of one shape: new moments, current weights.

    Returns:
      What the caller subtracts from the weights, times a rate.
    """
    if settings.corrections is not None:
        m, v = m / settings.corrections[0], v / settings.corrections[1]
    return m / (tf.sqrt(v) + settings.epsilon) + settings.weight_decay * weights


# Variables that kernels change are handles here: XLA writes the new values over the old ones. A
# mirrored variable cannot be an argument; its handle is that of the replica that is being updated.


@one_kernel
def _next_update(
    m: tf.Tensor, v: tf.Tensor, gradient: tf.Tensor, weights: tf.Tensor, settings: AdamSettings
) -> tf.Tensor:
    """`adam_update` after replacing both moments.

    m, v: handles of float variables; gradient, weights: float tensors of their shape.
    """
    beta_1, beta_2 = settings.beta_1, settings.beta_2
    next_m = beta_1 * _read(m, like=gradient) + (1.0 - beta_1) * gradient
    next_v = beta_2 * _read(v, like=gradient) + (1.0 - beta_2) * tf.square(gradient)
    tf.raw_ops.AssignVariableOp(resource=m, value=next_m)
    tf.raw_ops.AssignVariableOp(resource=v, value=next_v)
    return adam_update(next_m, next_v, weights, settings)


@one_kernel
def _move(weights: tf.Tensor, update: tf.Tensor, rate: tf.Tensor) -> None:
    """Subtracts rate * update from a variable; weights: its handle."""
    moved = _read(weights, like=update) - rate * update
    tf.raw_ops.AssignVariableOp(resource=weights, value=moved)


def _read(handle: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=like.dtype)
    return tf.ensure_shape(value, like.shape)


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

    @tf.autograph.experimental.do_not_convert  # Nothing to convert.
    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """Moves one variable."""
        index = self._index_dict[self._var_key(variable)]
        m, v, weights = self._m[index], self._v[index], tf.convert_to_tensor(variable)
        settings = self._settings(variable, self.iterations + 1)
        update = _next_update(m.handle, v.handle, gradient, weights, settings)
        scale = self.scale(update, weights, our_name(variable))
        _move(variable.handle, update, scale * self._rate(variable))

    def _settings(self, variable: tf.Variable, step: tf.Tensor) -> AdamSettings:
        """step: 1-based."""
        corrections = None
        if self.bias_correction:
            corrections = bias_corrections(tf.cast(step, variable.dtype), self.beta_1, self.beta_2)
        decay = self.weight_decay_rate if self.is_decayed(our_name(variable)) else 0.0
        return AdamSettings(self.beta_1, self.beta_2, self.epsilon, decay, corrections)

    def _rate(self, variable: tf.Variable) -> tf.Tensor:
        return tf.cast(self.learning_rate, variable.dtype) * self.rate_factor(our_name(variable))

    def describe_updates(self, variables: Sequence[tf.Variable]) -> dict[str, dict[str, tf.Tensor]]:
        """`update_norm` and `trust_ratio` of the last update of variables, by their names.

        They are computed from the moments, and from the weights after the update instead of before.
        """
        figures: dict[str, dict[str, tf.Tensor]] = {"update_norm": {}, "trust_ratio": {}}
        for variable in variables:
            index = self._index_dict[self._var_key(variable)]
            settings = self._settings(variable, self.iterations)
            update = adam_update(self._m[index], self._v[index], variable, settings)
            name = our_name(variable)
            scale = self.scale(update, variable, name)
            figures["update_norm"][name] = tf.norm(scale * self._rate(variable) * update)
            figures["trust_ratio"][name] = tf.convert_to_tensor(scale, tf.float32)
        return figures

    def rate_factor(self, name: str) -> float:
        """What the learning rate is multiplied by for the variable of that name."""
        factors = self.learning_rate_factors
        return next((factor for pattern, factor in factors if re.search(pattern, name)), 1.0)

    def scale(self, update: tf.Tensor, weights: tf.Tensor, name: str) -> tf.Tensor | float:
        """The factor beside the learning rate for the variable of that name."""
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
