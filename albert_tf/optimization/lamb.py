"""LAMB (You et al., ICLR 2020, first version) as google-research/albert has it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from albert_tf.keras_compat import keras
from albert_tf.optimization.base import AdamFamily


@keras.utils.register_keras_serializable("albert_tf")
class LAMB(AdamFamily):
    """AdamW's update, scaled for each variable by its trust ratio.

    A shared block is one variable, so all layers that share it have one ratio; query, key and value
    have three. Variables excluded from layer adaptation move as under AdamW.
    """

    def __init__(
        self,
        learning_rate: Any,
        exclude_from_layer_adaptation: Sequence[str] | None = None,
        name: str = "LAMB",
        **kwargs: Any,
    ) -> None:
        """Args:
        learning_rate, name, kwargs: see AdamFamily.
        exclude_from_layer_adaptation: regular expressions searched in variable names; None: those
          of `exclude_from_weight_decay`.
        """
        super().__init__(learning_rate, name=name, **kwargs)
        if exclude_from_layer_adaptation is None:
            exclude_from_layer_adaptation = self.exclude_from_weight_decay_patterns
        self.exclude_from_layer_adaptation = tuple(exclude_from_layer_adaptation)

    def adapts(self, name: str) -> bool:
        """Whether the trust ratio scales the update of the variable of that name."""
        patterns = self.exclude_from_layer_adaptation
        return not any(re.search(pattern, name) for pattern in patterns)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        config = super().get_config()
        config["exclude_from_layer_adaptation"] = list(self.exclude_from_layer_adaptation)
        return config
