"""AdamFamily, the base of the optimizers: moments, exclusion by name, clipping, rates by layer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from albert_tf.keras_compat import keras
from albert_tf.machine import fast_switch
from albert_tf.optimization import in_place
from albert_tf.optimization.updates import (
    AdamSettings,
    adam_direction,
    adam_update,
    bias_corrections,
    trust_ratio,
)
from albert_tf.variable_names import distinct, variable_name

# The reference's list: it decays neither biases nor layer normalization.
DEFAULT_EXCLUSIONS = ("LayerNorm", "layer_norm", "bias")


class AdamFamily(keras.optimizers.Optimizer):
    """Base of all optimizers; a subclass chooses the variables that do not use AdamW's update."""

    use_ema: bool  # Keras's.

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
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """
        Args:
          learning_rate: a number or a schedule of the 0-based step.
          weight_decay_rate: multiplied by the weights and added to the update.
          beta_1, beta_2: shares of the old moments in the new ones.
          epsilon: added to the root of the second moment.
          bias_correction: divide the moments by 1 - beta^t, which the reference does not do.
          exclude_from_weight_decay: regular expressions searched in variable names.
          learning_rate_factors: pairs of a regular expression and a factor for the variables in
            whose names it is found; see `layerwise_factors`.
          global_clipnorm: largest global norm of the gradients; None does not clip.
          name, kwargs: arguments of Keras's Optimizer, `use_ema` among them, except `weight_decay`.

        Raises:
          ValueError: `weight_decay` is given, which would decay biases and norms as well.
        """
        if kwargs.pop("weight_decay", None):
            raise ValueError("Keras's weight_decay decays every variable: use weight_decay_rate.")
        # Without None Keras would subtract a decay of 0 from every variable in every step.
        super().__init__(
            name=name or type(self).__name__,
            weight_decay=None,
            global_clipnorm=global_clipnorm,
            jit_compile=False,
            **kwargs,
        )
        self._learning_rate = self._build_learning_rate(learning_rate)
        self.weight_decay_rate = weight_decay_rate
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction
        self.exclude_from_weight_decay_patterns = tuple(exclude_from_weight_decay)
        self.learning_rate_factors = tuple(
            (pattern, factor) for pattern, factor in learning_rate_factors
        )

    def build(self, var_list: Sequence[tf.Variable]) -> None:
        """Makes the moments of every variable."""
        # Keras calls this before every update.
        if getattr(self, "_built", False):
            return
        # Keras would make the averages first. Checkpoints number the variables, and the moments
        # need the same numbers with and without averages.
        has_averages, self.use_ema = self.use_ema, False
        super().build(var_list)
        self._m = [self.add_variable_from_reference(variable, "m") for variable in var_list]
        self._v = [
            None if self.orthogonalizes(each) else self.add_variable_from_reference(each, "v")
            for each in var_list
        ]
        if has_averages:
            self.use_ema = True
            self._model_variables_moving_average = [
                self.add_variable_from_reference(each, "average", initial_value=each)
                for each in var_list
            ]
        self._built = True

    @property
    def averages(self) -> Sequence[tf.Variable]:
        """Running averages of the variables that it was built for; empty without `use_ema`."""
        return getattr(self, "_model_variables_moving_average", ())

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[tf.Tensor, tf.Variable]], *args: Any, **kwargs: Any
    ):
        """Keras's method, with sparse gradients made dense first."""
        # The norm of rows that are not summed is not the gradient's norm: clipping would depend on
        # how embeddings are looked up.
        dense = [
            (gradient if gradient is None else tf.convert_to_tensor(gradient), variable)
            for gradient, variable in grads_and_vars
        ]
        return super().apply_gradients(dense, *args, **kwargs)

    # AutoGraph would search every variable's update for something to convert, and find nothing.
    @tf.autograph.experimental.do_not_convert
    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """Updates one variable and its moments; Keras calls it for each."""
        name = variable_name(variable)
        m, v = self._moments(variable)
        step, rate, settings = self.iterations + 1, self._rate(variable), self._settings(name)
        adapts = self.adapts(name)
        if fast_switch.is_on():
            in_place.update(variable, gradient, m, v, step, rate, settings, adapts)
            return
        # The formulas take tensors: they would read a variable again at every use.
        weights, gradient, old_m, old_v = map(tf.convert_to_tensor, (variable, gradient, m, v))
        updated = adam_update(weights, gradient, old_m, old_v, step, rate, settings, adapts)
        for old, new in zip((variable, m, v), updated):
            old.assign(new)

    def _moments(self, variable: tf.Variable) -> tuple[tf.Variable, tf.Variable]:
        index = self._index_dict[self._var_key(variable)]
        return self._m[index], self._v[index]

    def _settings(self, name: str) -> AdamSettings:
        """The settings for the variable of that name."""
        decay = self.weight_decay_rate if self.is_decayed(name) else 0.0
        return AdamSettings(self.beta_1, self.beta_2, self.epsilon, decay, self.bias_correction)

    def _rate(self, variable: tf.Variable) -> tf.Tensor:
        """The learning rate of one variable, a scalar in its precision."""
        factor = self.rate_factor(variable_name(variable))
        return tf.cast(self.learning_rate, variable.dtype) * factor

    def describe_updates(self, variables: Sequence[tf.Variable]) -> dict[str, dict[str, tf.Tensor]]:
        """`update_norm` and `trust_ratio` of the last update, each from variable name (see
        `distinct`) to float32 scalar.
        """
        # Computed from the moments, and from the weights after the update instead of before, so
        # that nothing has to be stored for these figures.
        figures: dict[str, dict[str, tf.Tensor]] = {"update_norm": {}, "trust_ratio": {}}
        keys = distinct([variable_name(variable) for variable in variables])
        for key, variable in zip(keys, variables):
            name, weights = variable_name(variable), tf.convert_to_tensor(variable)
            direction = self._last_direction(variable)
            ratio = trust_ratio(weights, direction) if self.adapts(name) else 1.0
            figures["update_norm"][key] = tf.norm(ratio * self._rate(variable) * direction)
            figures["trust_ratio"][key] = tf.convert_to_tensor(ratio, tf.float32)
        return figures

    def _last_direction(self, variable: tf.Variable) -> tf.Tensor:
        """The direction of the last update."""
        settings = self._settings(variable_name(variable))
        weights = tf.convert_to_tensor(variable)
        corrections = bias_corrections(self.iterations, weights, settings)
        return adam_direction(weights, *self._moments(variable), corrections, settings)

    def rate_factor(self, name: str) -> float:
        """The factor of the learning rate for the variable of that name."""
        factors = self.learning_rate_factors
        return next((factor for pattern, factor in factors if re.search(pattern, name)), 1.0)

    def adapts(self, name: str) -> bool:
        """Whether LAMB's trust ratio scales the update of the variable of that name."""
        return False

    def orthogonalizes(self, variable: tf.Variable) -> bool:
        """Whether Muon updates a variable, which then has no second moment."""
        return False

    def is_decayed(self, name: str) -> bool:
        """Whether weight decay applies to the variable of that name."""
        patterns = self.exclude_from_weight_decay_patterns
        return not any(re.search(pattern, name) for pattern in patterns)

    def exclude_from_weight_decay(
        self, var_list: Sequence[tf.Variable] | None = None, var_names: Sequence[str] | None = None
    ) -> None:
        """Keras's method: `var_names` are regular expressions in addition to the constructor's.

        Raises:
          ValueError: `var_list` is given, which `get_config` could not store.
        """
        if var_list:
            raise ValueError("get_config cannot store var_list: give names in var_names instead.")
        self.exclude_from_weight_decay_patterns += tuple(var_names or ())

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        config = super().get_config()
        rate = self._serialize_hyperparameter(self._learning_rate)
        config.update(
            learning_rate=rate if isinstance(rate, dict) else float(rate),  # For JSON.
            weight_decay_rate=self.weight_decay_rate,
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            epsilon=self.epsilon,
            bias_correction=self.bias_correction,
            exclude_from_weight_decay=list(self.exclude_from_weight_decay_patterns),
            learning_rate_factors=[list(pair) for pair in self.learning_rate_factors],
        )
        del config["jit_compile"], config["weight_decay"]  # Not arguments of the constructor.
        return config
