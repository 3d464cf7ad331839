"""AlbertConfig: everything that determines the shape and the arithmetic of an ALBERT encoder.

Field names and defaults follow the published `albert_config.json` files. The BERT baselines of the
ALBERT paper are the same architecture with `embedding_size == hidden_size` and
`parameter_sharing="none"`.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
from typing import Any, get_type_hints

from albert_tf.config_file import (
    GOOGLE_CONFIGS,
    check_groups_agree,
    from_google,
    from_huggingface,
    read_json,
)
from albert_tf.errors import UserError
from data_pipeline.files import atomic_files

PARAMETER_SHARING = ("all", "attention", "ffn", "none")
ACTIVATIONS = ("gelu", "gelu_erf", "relu", "tanh", "linear")

# Keys of published albert_config.json files that the reference's encoder never reads.
_IGNORED_KEYS = frozenset(
    {"net_structure_type", "gap_size", "num_memory_blocks", "layers_to_keep", "down_scale_factor"}
)
# Much code loops over the layers. With 10^9 of them, it would run forever before the error that
# they do not fit into memory.
_MOST = {"num_hidden_layers": 10_000, "inner_group_num": 10_000}


def _check_field(name: str, kind: type, value: Any) -> None:
    """Raises UserError unless `value` has the type of the field and is in its range."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is bool:
        valid, expected = isinstance(value, bool), "true or false"
    elif kind is str:
        valid, expected = isinstance(value, str), "a string"
    elif kind is int:
        limit = _MOST.get(name, 2**31 - 1)  # Ids and shapes are int32.
        valid, expected = type(value) is int and 0 < value <= limit, "a positive integer"
        if type(value) is int and value > limit:
            expected = f"at most {limit:,}"
    elif name.endswith("_prob"):
        valid, expected = is_number and 0 <= value < 1, "a probability in [0, 1)"
    else:
        # 2^128 is the end of the range of float32.
        valid, expected = is_number and 0 < value < 2.0**128, "a positive number"
    if not valid:
        raise UserError(f"{name} must be {expected}, not {value!r}.")


@dataclasses.dataclass(frozen=True)
class AlbertConfig:
    """Architecture of an encoder; validated on construction.

    Attributes:
      vocab_size: V, entries of the word embedding table.
      embedding_size: E, width of the factorized embeddings. With E == H there is no projection,
        see always_project_embeddings.
      hidden_size: H, width of the transformer.
      num_hidden_layers: L, how often a (possibly shared) layer is applied.
      num_attention_heads: N; must divide H.
      intermediate_size: F, width inside the feed-forward block.
      num_hidden_groups: G; layer l uses the weights of group int(l / L * G).
      inner_group_num: blocks applied one after the other within each layer.
      parameter_sharing: what layers of one group share: "all" (ALBERT), "attention" or "ffn" only,
        or "none" (BERT).
      hidden_act: "gelu" (the tanh approximation, as in the reference), "gelu_erf" (the exact one),
        "relu", "tanh" or "linear".
      hidden_dropout_prob: dropout of embeddings and block outputs, in training.
      attention_probs_dropout_prob: dropout of attention probabilities, in training.
      max_position_embeddings: longest sequence.
      type_vocab_size: number of segment types.
      initializer_range: standard deviation of the truncated normal initializer.
      layer_norm_eps: added to the variance in layer normalization.
      recompute: in training, keep two tensors [T, H] for each layer and recompute the others for
        the gradient: less memory, more time, the same result.
      always_project_embeddings: have the dense layer E -> H even where E == H, as Hugging Face's
        library does and google-research/albert does not.
      tie_word_embeddings: use the word embeddings as the output table of the masked-LM head; False:
        use a separate table, as some models of Hugging Face's library do.
    """

    vocab_size: int
    embedding_size: int = 128
    hidden_size: int = 4096
    num_hidden_layers: int = 12
    num_attention_heads: int = 64
    intermediate_size: int = 16384
    num_hidden_groups: int = 1
    inner_group_num: int = 1
    parameter_sharing: str = "all"
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    recompute: bool = False
    always_project_embeddings: bool = False
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(AlbertConfig).items():
            _check_field(name, kind, getattr(self, name))
        choices = {"parameter_sharing": PARAMETER_SHARING, "hidden_act": ACTIVATIONS}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise UserError(f"{name} {getattr(self, name)!r} is not one of {allowed}.")
        if self.hidden_size % self.num_attention_heads:
            raise UserError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads "
                f"{self.num_attention_heads}. Choose a number of heads that divides it."
            )
        if self.num_hidden_groups > self.num_hidden_layers:
            raise UserError(
                f"num_hidden_groups {self.num_hidden_groups} is more than num_hidden_layers "
                f"{self.num_hidden_layers}. Use at most one group per layer."
            )
        if self.parameter_sharing != "all" and self.num_hidden_groups != 1:
            raise UserError(
                f"num_hidden_groups {self.num_hidden_groups} requires "
                f"parameter_sharing='all', not {self.parameter_sharing!r}. Use num_hidden_groups=1."
            )

    @property
    def head_size(self) -> int:
        """D, the width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def has_embedding_projection(self) -> bool:
        """Whether there is a dense layer E -> H between the embeddings and the transformer."""
        return self.always_project_embeddings or self.embedding_size != self.hidden_size

    @property
    def num_attention_groups(self) -> int:
        """The number of different attention blocks, not counting inner groups."""
        return self._num_groups(shared_by=("all", "attention"))

    @property
    def num_ffn_groups(self) -> int:
        """The number of different feed-forward blocks, not counting inner groups."""
        return self._num_groups(shared_by=("all", "ffn"))

    def _num_groups(self, shared_by: tuple[str, ...]) -> int:
        is_shared = self.parameter_sharing in shared_by
        return self.num_hidden_groups if is_shared else self.num_hidden_layers

    def group_of_layer(self, layer: int, num_groups: int) -> int:
        """Index of the group whose weights `layer` (0-based) uses: 12 layers in 4 groups give
        0 0 0 1 1 1 2 2 2 3 3 3.
        """
        # The reference's formula has rounding errors: with 22 layers in 22 groups, layer 15 uses
        # group 14. Its checkpoints were trained that way, so the formula is kept. Unshared parts
        # have exactly one group for each layer.
        if num_groups == self.num_hidden_layers and self.parameter_sharing != "all":
            return layer
        return int(layer / self.num_hidden_layers * num_groups)

    @classmethod
    def field_names(cls) -> list[str]:
        """Names of all fields."""
        return [field.name for field in dataclasses.fields(cls)]

    def replace(self, **changes: Any) -> AlbertConfig:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as in albert_config.json."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any], source: str = "config") -> AlbertConfig:
        """The configuration from the keys of an albert_config.json, or of Hugging Face's
        config.json, which has a model_type (albert, bert, electra or distilbert). `source` is its
        name in errors. Unknown keys of the former raise a UserError that suggests the nearest.
        """
        names = cls.field_names()
        is_huggingface = "model_type" in values
        if is_huggingface:
            values = from_huggingface(values, names, source)
        for key in values:
            if key not in names and key not in _IGNORED_KEYS:
                near = difflib.get_close_matches(key, names, n=1)
                hint = f"Did you mean {near[0]!r}?" if near else f"Known keys: {', '.join(names)}."
                raise UserError(f"{source}: unknown key {key!r}. {hint}")
        if values.get("hidden_act", "") is None:  # null means "linear" in the reference.
            values = {**values, "hidden_act": "linear"}
        if "vocab_size" not in values:
            raise UserError(f"{source}: the key 'vocab_size' is missing.")
        try:
            config = cls(**{key: value for key, value in values.items() if key in names})
        except UserError as error:
            raise UserError(f"{source}: {error}") from None
        if is_huggingface and config.parameter_sharing == "all":
            check_groups_agree(config.num_hidden_layers, config.num_attention_groups, source)
        return config

    @classmethod
    def from_json_file(cls, path: str) -> AlbertConfig:
        """Reads an albert_config.json, the bert_config.json or electra_config.json of
        google-research's other models, or Hugging Face's config.json; see `from_dict`.
        """
        values, name = read_json(path), os.path.basename(path)
        return cls.from_dict(from_google(values, name) if name in GOOGLE_CONFIGS else values, path)

    def to_json_file(self, path: str) -> None:
        """Writes an albert_config.json, which google-research/albert can also read."""
        atomic_files.write_json(path, self.to_dict())
