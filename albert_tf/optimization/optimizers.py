"""LAMB (You et al., ICLR 2020, first version) and AdamW as google-research/albert has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.optimization.base import AdamFamily


@keras.utils.register_keras_serializable("albert_tf")
class AdamW(AdamFamily):
    """w <- w - lr * (m / (sqrt(v) + epsilon) + decay * w): no bias correction, and decay inside
    the update. Arguments: see AdamFamily.
    """

    def __init__(self, learning_rate: Any, name: str = "AdamW", **kwargs: Any) -> None:
        super().__init__(learning_rate, name=name, **kwargs)


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
        """
        Args:
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


def layerwise_factors(config: AlbertConfig, decay: float) -> list[tuple[str, float]]:
    """Factors of the learning rate: 1 for heads and top layer, times `decay` for each layer down,
    as ELECTRA and XLNet are fine-tuned.

    They come with regular expressions for variable names, see AdamFamily. A block that several
    layers share counts as the highest of them. With 4 layers in 2 groups and decay 0.5: 1 for group
    1, 0.25 for group 0, 0.0625 for the embeddings.
    """
    if not 0 < decay <= 1:
        raise UserError(
            f"layerwise learning rate decay {decay} does not lie in (0, 1]. Use 1 for one rate, or "
            "less for smaller rates further down."
        )
    parts = {"attention": config.num_attention_groups, "ffn": config.num_ffn_groups}
    if set(parts.values()) == {1}:
        raise UserError(
            f"a layerwise learning rate decay of {decay} has no meaning here: all "
            f"{config.num_hidden_layers} layers share one set of weights, which is the top layer's "
            "as much as the bottom layer's. Leave it out, or train a model with "
            "num_hidden_groups > 1 or parameter_sharing='none'."
        )
    factors = []
    for part, num_groups in parts.items():
        for layer in range(config.num_hidden_layers):  # Later entries of a group replace earlier.
            group = config.group_of_layer(layer, num_groups)
            pattern = rf"/group_{group}_inner_\d+_{part}/"
            factors.append((pattern, decay ** (config.num_hidden_layers - 1 - layer)))
    return [("/embeddings/", decay**config.num_hidden_layers), *dict(factors).items()]
