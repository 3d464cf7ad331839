"""Files of an architecture: how they are read, and what Hugging Face's keys mean here."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from albert_tf.errors import UserError
from data_pipeline.files import storage

# Far more than any configuration has: one with the names of 100,000 classes has a tenth.
_MOST_BYTES = 64 << 20

# Hugging Face's name -> ours. Its "gelu" is exact, the reference's is the tanh approximation.
HUGGINGFACE_ACTIVATIONS = {
    "gelu_pytorch_tanh": "gelu",
    "gelu_new": "gelu",
    "gelu": "gelu_erf",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}
# The other keys of transformers (4.57) that change a model's answers -> the values with which they
# do not. The rest of its keys say how a model was made, or what is returned of it:
# output_attentions, chunk_size_feed_forward, dtype, ids of tokens (padding is masked), generation;
# is_decoder, which an ALBERT does not read. Keys that it does not know change nothing there.
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
# Hugging Face's model_type -> its defaults, where they are not those of the fields here.
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
# DistilBERT's key -> the one that the others have for it.
_DISTILBERT_KEYS = {
    "dim": "hidden_size",
    "hidden_dim": "intermediate_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "activation": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}
# Files that google-research's other codes call their configuration -> Hugging Face's model_type,
# and the word for their GELU there.
GOOGLE_CONFIGS = {
    "bert_config.json": {"model_type": "bert", "gelu": "gelu_new"},
    "electra_config.json": {"model_type": "electra", "gelu": "gelu"},
}
# Kinds of models that look like a BERT, and are not one.
_OTHERS = {
    "roberta": "its positions begin at 2, and its tokenizer works on bytes",
    "deberta": "its attention has relative positions",
    "deberta-v2": "its attention has relative positions",
    "xlnet": "its attention has relative positions and permutations",
}


def read_json(path: str, kind: type = dict) -> Any:
    """The content of a JSON file, an object or another `kind`; a UserError where the file is
    absent, damaged, too large, or something else.
    """
    if not storage.exists(path):
        raise UserError(
            f"config file {path} does not exist. Pass the path of an albert_config.json."
        )
    if storage.is_folder(path):
        raise UserError(f"config file {path} is a folder. Pass the albert_config.json in it.")
    size = storage.size(path)
    if size > _MOST_BYTES:
        raise UserError(f"config file {path} has {size:,} bytes, and is not a configuration.")
    try:
        values = json.loads(storage.read_bytes(path).decode())
    except RecursionError:
        raise UserError(f"config file {path} is nested too deeply for a configuration.") from None
    except UnicodeDecodeError as error:
        raise UserError(f"config file {path} is not UTF-8: {error}. Save it as UTF-8.") from None
    except ValueError as error:  # It is not JSON, or has a number of thousands of digits.
        raise UserError(f"config file {path} is not valid JSON: {error}.") from None
    if not isinstance(values, kind):
        expected = "an object" if kind is dict else f"a {kind.__name__}"
        raise UserError(f"config file {path} holds a JSON {type(values).__name__}, not {expected}.")
    return values


def from_google(values: dict[str, Any], name: str) -> dict[str, Any]:
    """The content of a configuration of google-research's BERT or ELECTRA, a file of that name, as
    Hugging Face's config.json has it.
    """
    google = GOOGLE_CONFIGS[name]
    act = values.get("hidden_act", "gelu")
    act = google["gelu"] if act == "gelu" else act or "linear"
    size = {"embedding_size": values.get("embedding_size", values.get("hidden_size"))}
    return {**values, **size, "model_type": google["model_type"], "hidden_act": act}


def from_huggingface(
    values: dict[str, Any], fields: Collection[str], source: str = "config"
) -> dict[str, Any]:
    """The fields of an AlbertConfig, by names in `fields`, from the content of a config.json; a
    UserError for another kind of model, or one that this project does not compute.
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
                f"{json.dumps(harmless[key][-1])}: a model with it gives other answers."
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
    """Raises UserError where Hugging Face's formula puts a layer into another group than ours."""
    # With 22 layers in 22 groups, layer 15: int(15 / (22 / 22)) is 15 there, int(15 / 22 * 22) is
    # 14 in the reference and here.
    for layer in range(layers):
        if int(layer / (layers / groups)) != int(layer / layers * groups):
            raise UserError(
                f"{source}: with {layers} layers in {groups} groups, layer {layer} is in another "
                "group in Hugging Face's library than in google-research/albert and here."
            )
