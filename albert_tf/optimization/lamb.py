"""LAMB (You et al., ICLR 2020, first version) as google-research/albert has it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from albert_tf.optimization.base import AdamFamily


def trust_ratio(weights: tf.Tensor, update: tf.Tensor) -> tf.Tensor:
    """Norm of the weights over norm of the update, a scalar; 1 where either norm is 0."""
    weight_norm, update_norm = tf.norm(weights), tf.norm(update)
    defined = tf.logical_and(weight_norm > 0, update_norm > 0)
    return tf.where(
        defined, tf.math.divide_no_nan(weight_norm, update_norm), tf.ones_like(weight_norm)
    )


class LAMB(AdamFamily):
    """AdamW's update, scaled for each variable by its trust ratio.

    A shared block is one variable, so all layers that share it have one ratio; query, key and value
    have three. Variables excluded from layer adaptation move as under AdamW; by default those
    excluded from decay.
    """

    def __init__(
        self,
        learning_rate: Any,
        exclude_from_layer_adaptation: Sequence[str] | None = None,
        name: str = "LAMB",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, name=name, **kwargs)
        if exclude_from_layer_adaptation is None:
            exclude_from_layer_adaptation = self.exclude_from_weight_decay_patterns
        self.exclude_from_layer_adaptation = tuple(exclude_from_layer_adaptation)

    def scale(self, update: tf.Tensor, weights: tf.Tensor, name: str) -> tf.Tensor | float:
        if any(re.search(pattern, name) for pattern in self.exclude_from_layer_adaptation):
            return 1.0
        return trust_ratio(weights, update)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config["exclude_from_layer_adaptation"] = list(self.exclude_from_layer_adaptation)
        return config
