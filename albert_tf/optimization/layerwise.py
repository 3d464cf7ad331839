"""Smaller learning rates for lower layers (ELECTRA's and XLNet's recipe for fine-tuning)."""

from __future__ import annotations

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError


def layerwise_factors(config: AlbertConfig, decay: float) -> list[tuple[str, float]]:
    """Factors of the learning rate: 1 for heads and top layer, times `decay` for each layer down.

    A block that several layers share counts as the highest of them. With 4 layers in 2 groups and
    decay 0.5: 1 for group 1, 0.25 for group 0, 0.0625 for the embeddings.

    Returns:
      Pairs of a regular expression for variable names and a factor, see AdamFamily.

    Raises:
      UserError: all layers share their weights, so that no weight belongs to a lower layer.
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
