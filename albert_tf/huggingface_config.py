"""Hugging Face's config.json as an AlbertConfig, and back; both it and google-research/albert know
groups of layers only.
"""

from __future__ import annotations

import json
from typing import Any

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError

# Hugging Face's name -> ours. Its "gelu" is exact, the reference's is the tanh approximation.
_ACTIVATIONS = {
    "gelu_pytorch_tanh": "gelu",
    "gelu_new": "gelu",
    "gelu": "gelu_erf",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}
# The other keys of transformers (4.57) that change an ALBERT's answers -> the values with which
# they do not. The rest of its keys say how a model was made, or what is returned of it:
# output_attentions, chunk_size_feed_forward, dtype, ids of tokens (padding is masked), generation;
# is_decoder, which an ALBERT does not read. Keys that it does not know change nothing there.
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "position_embedding_type": ("absolute",),
    "pruned_heads": (None, {}),
    "quantization_config": (None,),
}
# Hugging Face's own default, where a field of ours has none.
_DEFAULTS = {"vocab_size": 30000}


def from_huggingface(values: dict[str, Any], source: str = "config") -> AlbertConfig:
    """The architecture that a config.json describes.

    Keys that change no answer are left out.

    Args:
      values: the content of the file.
      source: its name, for messages.

    Raises:
      UserError: another kind of model, or one that this project does not compute.
    """
    if values.get("model_type") != "albert":
        raise UserError(f"{source}: model_type is {values.get('model_type')!r}, not 'albert'.")
    for key in _HARMLESS.keys() & values.keys():
        if values[key] not in _HARMLESS[key]:
            raise UserError(
                f"{source}: {key} {values[key]!r:.80} is not supported, only "
                f"{json.dumps(_HARMLESS[key][-1])}: models with it answer otherwise."
            )
    act = values.get("hidden_act", "gelu_new")
    if act not in _ACTIVATIONS:
        raise UserError(f"{source}: hidden_act {act!r} is not one of {', '.join(_ACTIVATIONS)}.")
    known = {key: value for key, value in values.items() if key in AlbertConfig.field_names()}
    config = AlbertConfig.from_dict({**_DEFAULTS, **known, "hidden_act": _ACTIVATIONS[act]}, source)
    _check_groups_agree(config, source)
    return config


def to_huggingface(config: AlbertConfig) -> dict[str, Any]:
    """The keys of a config.json, with what Hugging Face needs beside the architecture.

    Its library, which ignores keys that it does not know, always has the projection; the key is
    there for `from_huggingface`, where it matters.
    """
    _check_groups_agree(config, "Hugging Face's config.json")
    activations = {ours: theirs for theirs, ours in _ACTIVATIONS.items()}
    values = as_groups(config).to_dict()
    del values["parameter_sharing"], values["recompute"]
    for key, default in (("always_project_embeddings", False), ("tie_word_embeddings", True)):
        if values[key] == default:
            del values[key]
    return {
        **values,
        "model_type": "albert",
        "hidden_act": activations[config.hidden_act],
        "position_embedding_type": "absolute",
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 3,
    }


def class_names(values: dict[str, Any], source: str = "config") -> list[str]:
    """The names of the classes in order, as config.json has them in `id2label`; [] if it has none.

    {"0": "yes", "1": "no"} -> ["yes", "no"]

    Raises:
      UserError: they are not numbered from 0 on, or not texts.
    """
    names = values.get("id2label") or {}
    numbers = [str(number) for number in range(len(names))]
    if not isinstance(names, dict) or names.keys() != set(numbers):
        raise UserError(f"{source}: id2label does not number its classes from 0 on: {names!r:.200}")
    if not all(isinstance(name, str) for name in names.values()):
        raise UserError(f"{source}: id2label has names that are no texts: {names!r:.200}")
    return [names[number] for number in numbers]


def num_classes(values: dict[str, Any], source: str = "config") -> int:
    """The number of classes that a config.json names or else states; Hugging Face's default is 2.

    Raises:
      UserError: see `class_names`; or `num_labels` is no positive integer.
    """
    names = class_names(values, source)
    number = len(names) or values.get("num_labels", 2)
    if type(number) is not int or number < 1:
        raise UserError(f"{source}: num_labels must be a positive integer, not {number!r}.")
    return number


def check_one_answer(values: dict[str, Any], source: str = "config") -> None:
    """Raises UserError unless a classifier's answer is one class of several, or one number."""
    problem, number = values.get("problem_type"), num_classes(values, source)
    if problem not in (None, "regression", "single_label_classification"):
        raise UserError(
            f"{source}: problem_type is {problem!r}, of which the answers are not computed yet, "
            "only those of 'single_label_classification' and 'regression'. To start another model "
            "from the encoder alone, pass the folder to run_finetuning --init_checkpoint."
        )
    if problem == "regression" and number > 1:
        raise UserError(
            f"{source}: problem_type is 'regression' with {number} numbers for a text (num_labels, "
            "id2label); only one number is computed."
        )


def as_groups(config: AlbertConfig) -> AlbertConfig:
    """The same architecture with parameter_sharing="all", for formats that know groups only: where
    nothing is shared, each layer is a group.

    Raises:
      UserError: with so many layers, groups cannot say that.
    """
    if config.parameter_sharing != "none":
        return config
    number = config.num_hidden_layers
    grouped = config.replace(parameter_sharing="all", num_hidden_groups=number)
    if any(grouped.group_of_layer(layer, number) != layer for layer in range(number)):
        raise UserError(
            f"with {number} layers the reference's formula does not give each layer its own group, "
            "so that unshared weights cannot be said with groups."
        )
    return grouped


def _check_groups_agree(config: AlbertConfig, source: str) -> None:
    """Raises UserError where Hugging Face's formula puts a layer into another group than ours.

    With 22 layers in 22 groups, layer 15: int(15 / (22 / 22)) is 15 there,
    int(15 / 22 * 22) is 14 in the reference and here.
    """
    layers, groups = config.num_hidden_layers, as_groups(config).num_hidden_groups
    for layer in range(layers):
        if int(layer / (layers / groups)) != int(layer / layers * groups):
            raise UserError(
                f"{source}: with {layers} layers in {groups} groups, layer {layer} is in another "
                "group in Hugging Face's library than in google-research/albert and here."
            )
