"""Configuration files: reading them, and translating Hugging Face's keys to ours."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from albert_tf.errors import UserError
from data_pipeline.files import storage

# Far larger than any configuration: one with the names of 100,000 classes has a tenth of this.
_MOST_BYTES = 64 << 20

# Hugging Face's name -> ours. Its "gelu" is the exact one, the reference's the tanh approximation.
HUGGINGFACE_ACTIVATIONS = {
    "gelu_pytorch_tanh": "gelu",
    "gelu_new": "gelu",
    "gelu": "gelu_erf",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}
# Other keys of transformers (4.57) that change a model's outputs -> the values that are supported.
# All remaining keys do not change the outputs: they say how a model was made, or what it returns
# (output_attentions, chunk_size_feed_forward, dtype, token ids (padding is masked), generation),
# or are not read by ALBERT (is_decoder). transformers ignores unknown keys.
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "position_embedding_type": ("absolute",),
    "pruned_heads": (None, {}),
    "quantization_config": (None,),
}
_BERT_DEFAULTS = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "parameter_sharing": "none",
}
# Hugging Face's model_type -> those of its defaults that differ from the fields of AlbertConfig.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "albert": {"vocab_size": 30000, "hidden_act": "gelu_new"},
    "bert": _BERT_DEFAULTS,
    "electra": {
        **_BERT_DEFAULTS,
        "hidden_size": 256,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
    },
    "distilbert": {**_BERT_DEFAULTS, "num_hidden_layers": 6},
}
MODEL_TYPES = tuple(_DEFAULTS)
# DistilBERT's key -> the key that the other models use.
_DISTILBERT_KEYS = {
    "dim": "hidden_size",
    "hidden_dim": "intermediate_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "activation": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}
# Configuration files of google-research's other repositories -> Hugging Face's model_type, and
# Hugging Face's name for their GELU.
GOOGLE_CONFIGS = {
    "bert_config.json": {"model_type": "bert", "gelu": "gelu_new"},
    "electra_config.json": {"model_type": "electra", "gelu": "gelu"},
}
# Kinds of models that resemble BERT but compute something else.
_OTHERS = {
    "roberta": "its positions begin at 2, and its tokenizer works on bytes",
    "deberta": "its attention has relative positions",
    "deberta-v2": "its attention has relative positions",
    "xlnet": "its attention has relative positions and permutations",
}


def read_json(path: str, kind: type = dict) -> Any:
    """The content of a JSON file, of type `kind` (default: an object). Raises UserError if the file
    is missing, damaged, too large, or of another type.
    """
    if not storage.exists(path):
        raise UserError(
            f"config file {path} does not exist. Pass the path of an albert_config.json."
        )
    if storage.is_folder(path):
        raise UserError(f"config file {path} is a folder. Pass the albert_config.json in it.")
    size = storage.size(path)
    if size > _MOST_BYTES:
        raise UserError(f"config file {path} has {size:,} bytes, too many for a configuration.")
    try:
        values = json.loads(storage.read_bytes(path).decode())
    except RecursionError:
        raise UserError(f"config file {path} is nested too deeply for a configuration.") from None
    except UnicodeDecodeError as error:
        raise UserError(f"config file {path} is not UTF-8: {error}. Save it as UTF-8.") from None
    except ValueError as error:  # Not JSON, or a number with thousands of digits.
        raise UserError(f"config file {path} is not valid JSON: {error}.") from None
    if not isinstance(values, kind):
        expected = "an object" if kind is dict else f"a {kind.__name__}"
        raise UserError(f"config file {path} holds a JSON {type(values).__name__}, not {expected}.")
    return values


def from_google(values: dict[str, Any], name: str) -> dict[str, Any]:
    """Converts the configuration of google-research's BERT or ELECTRA, read from a file called
    `name`, to the keys of Hugging Face's config.json.
    """
    google = GOOGLE_CONFIGS[name]
    act = values.get("hidden_act", "gelu")
    act = google["gelu"] if act == "gelu" else act or "linear"
    size = {"embedding_size": values.get("embedding_size", values.get("hidden_size"))}
    return {**values, **size, "model_type": google["model_type"], "hidden_act": act}


def from_huggingface(
    values: dict[str, Any], fields: Collection[str], source: str = "config"
) -> dict[str, Any]:
    """The fields of an AlbertConfig, those named in `fields`, from the content of a config.json.
    Raises UserError for another kind of model, or one that this project does not support.
    """
    kind = values.get("model_type")
    if kind not in MODEL_TYPES:
        reason = f": {_OTHERS[kind]}" if kind in tuple(_OTHERS) else ""
        raise UserError(
            f"{source}: model_type is {kind!r}, not one of {', '.join(MODEL_TYPES)}{reason}."
        )
    harmless = _HARMLESS if kind == "albert" else {**_HARMLESS, "is_decoder": (False,)}
    for key in harmless.keys() & values.keys():
        if values[key] not in harmless[key]:
            raise UserError(
                f"{source}: {key} {values[key]!r:.80} is not supported, only "
                f"{json.dumps(harmless[key][-1])}: the outputs of the model would differ."
            )
    if kind == "distilbert":
        values = {_DISTILBERT_KEYS.get(key, key): value for key, value in values.items()}
    ours = {key: value for key, value in values.items() if key in fields}
    ours = {**_DEFAULTS[kind], **ours}
    if kind in ("bert", "distilbert"):
        ours["embedding_size"] = ours["hidden_size"]
    if ours["hidden_act"] not in tuple(HUGGINGFACE_ACTIVATIONS):
        known = ", ".join(HUGGINGFACE_ACTIVATIONS)
        raise UserError(f"{source}: hidden_act {ours['hidden_act']!r} is not one of {known}.")
    return {**ours, "hidden_act": HUGGINGFACE_ACTIVATIONS[ours["hidden_act"]]}


def check_groups_agree(layers: int, groups: int, source: str) -> None:
    """Raises UserError if Hugging Face's formula puts a layer into another group than ours."""
    # For layer 15 of 22 in 22 groups, Hugging Face has int(15 / (22 / 22)) = 15, the reference and
    # this project have int(15 / 22 * 22) = 14.
    for layer in range(layers):
        if int(layer / (layers / groups)) != int(layer / layers * groups):
            raise UserError(
                f"{source}: with {layers} layers in {groups} groups, layer {layer} is in another "
                "group in Hugging Face's library than in google-research/albert and here."
            )
