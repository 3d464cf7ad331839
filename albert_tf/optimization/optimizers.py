"""LAMB (You et al., ICLR 2020, first version), AdamW as google-research/albert has it, and Muon."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.optimization.base import AdamFamily
from albert_tf.optimization.updates import muon_direction, muon_update
from albert_tf.variable_names import variable_name

# The kernels of the layers; query, key and value are a matrix each. AdamW updates the embeddings
# and what maps from and to them, and also the pooler and other heads.
MATRICES_OF_LAYERS = (r"(^|/)transformer/.*/kernel$",)


@keras.utils.register_keras_serializable("albert_tf")
class AdamW(AdamFamily):
    """w <- w - lr * (m / (sqrt(v) + epsilon) + decay * w): no bias correction, and decay inside
    the update. Arguments: see AdamFamily.
    """


@keras.utils.register_keras_serializable("albert_tf")
class LAMB(AdamFamily):
    """AdamW's update, scaled for each variable by its trust ratio.

    A shared block is one variable, so all layers that share it have one ratio; query, key and value
    have three. Variables excluded from layer adaptation are updated as by AdamW.
    """

    def __init__(
        self,
        learning_rate: Any,
        exclude_from_layer_adaptation: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """
        Args:
          learning_rate, kwargs: see AdamFamily.
          exclude_from_layer_adaptation: regular expressions searched in variable names; None: those
            of `exclude_from_weight_decay`.
        """
        super().__init__(learning_rate, **kwargs)
        if exclude_from_layer_adaptation is None:
            exclude_from_layer_adaptation = self.exclude_from_weight_decay_patterns
        self.exclude_from_layer_adaptation = tuple(exclude_from_layer_adaptation)

    def adapts(self, name: str) -> bool:
        """Whether the trust ratio scales the update of the variable of that name."""
        patterns = self.exclude_from_layer_adaptation
        return not any(re.search(pattern, name) for pattern in patterns)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        patterns = list(self.exclude_from_layer_adaptation)
        return {**super().get_config(), "exclude_from_layer_adaptation": patterns}


@keras.utils.register_keras_serializable("albert_tf")
class Muon(AdamFamily):
    """Muon for the matrices of the layers, whose update is made orthogonal, and AdamW for all else.

    Both updates have about the same length, so that one learning rate, AdamW's, serves both. Equal
    to torch.optim.Muon with adjust_lr_fn="match_rms_adamw", except that Newton-Schulz steps are
    computed in the variables' precision, not in bfloat16. Clipping by the global norm counts all
    gradients.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: float = 0.95,
        matrices: Sequence[str] = MATRICES_OF_LAYERS,
        **kwargs: Any,
    ) -> None:
        """
        Args:
          learning_rate, kwargs: see AdamFamily.
          momentum: share of the old momentum of a matrix in the new one; `beta_1` is AdamW's.
          matrices: regular expressions searched in variable names; Muon updates those of rank 2.
        """
        super().__init__(learning_rate, **kwargs)
        self.momentum = momentum
        self.matrices = tuple(matrices)

    def orthogonalizes(self, variable: tf.Variable) -> bool:
        """Whether Muon updates a variable."""
        name = variable_name(variable)
        is_named = any(re.search(pattern, name) for pattern in self.matrices)
        return is_named and variable.shape.rank == 2

    @tf.autograph.experimental.do_not_convert
    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """Updates one variable and its moments; Keras calls it for each."""
        # A replica's variable has another name, so the moments made for it decide.
        m, v = self._moments(variable)
        if v is not None:
            super().update_step(gradient, variable)
            return
        decay = self._settings(variable_name(variable)).weight_decay
        weights, old_m = map(tf.convert_to_tensor, (variable, m))
        updated = muon_update(weights, gradient, old_m, self._rate(variable), self.momentum, decay)
        for old, new in zip((variable, m), updated):
            old.assign(new)

    def _last_direction(self, variable: tf.Variable) -> tf.Tensor:
        """The direction of the last update."""
        if not self.orthogonalizes(variable):
            return super()._last_direction(variable)
        # Without Nesterov's term, which needs the gradient: the length is the same.
        weights, m = map(tf.convert_to_tensor, (variable, self._moments(variable)[0]))
        return muon_direction(weights, m, self._settings(variable_name(variable)).weight_decay)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {**super().get_config(), "momentum": self.momentum, "matrices": list(self.matrices)}


def layerwise_factors(config: AlbertConfig, decay: float) -> list[tuple[str, float]]:
    """Factors of the learning rate: 1 for heads and top layer, times `decay` for each layer down,
    as ELECTRA and XLNet are fine-tuned.

    They come with regular expressions for variable names, see AdamFamily. A block that several
    layers share counts as the highest of them. With 4 layers in 2 groups and decay 0.5: 1 for group
    1, 0.25 for group 0, 0.0625 for the embeddings.
    """
    parts = {"attention": config.num_attention_groups, "ffn": config.num_ffn_groups}
    if set(parts.values()) == {1}:
        raise UserError(
            f"a layerwise learning rate decay of {decay} needs layers with weights of their own; "
            f"all {config.num_hidden_layers} layers share one set of weights. Leave it out, or "
            "train a model with num_hidden_groups > 1 or parameter_sharing='none'."
        )
    factors = []
    for part, num_groups in parts.items():
        for layer in range(config.num_hidden_layers):  # Later entries of a group replace earlier.
            group = config.group_of_layer(layer, num_groups)
            pattern = rf"/group_{group}_inner_\d+_{part}/"
            factors.append((pattern, decay ** (config.num_hidden_layers - 1 - layer)))
    return [("/embeddings/", decay**config.num_hidden_layers), *dict(factors).items()]
