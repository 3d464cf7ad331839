"""Hugging Face's config.json: written from an AlbertConfig, and read for the classes."""

from __future__ import annotations

from typing import Any

from albert_tf.config import AlbertConfig
from albert_tf.config_file import HUGGINGFACE_ACTIVATIONS, check_groups_agree
from albert_tf.errors import UserError

# Values of `problem_type`.
REGRESSION, MULTI_LABEL = "regression", "multi_label_classification"


def to_huggingface(config: AlbertConfig, kind: str = "albert") -> dict[str, Any]:
    """The keys of a config.json, with those that Hugging Face needs besides the architecture.
    `kind` is the result of `kind_to_write`.
    """
    if kind == "albert":
        grouped = as_groups(config)
        check_groups_agree(
            grouped.num_hidden_layers, grouped.num_hidden_groups, "Hugging Face's config.json"
        )
        # Ids of [CLS] and [SEP], as in the published configurations.
        config, further = grouped, {"bos_token_id": 2, "eos_token_id": 3}
    else:
        further = {}
    values = config.to_dict()
    left_out = ["parameter_sharing", "recompute"]
    if kind != "albert":
        left_out += ["num_hidden_groups", "inner_group_num"]
    if kind == "bert":
        left_out.append("embedding_size")
    # Hugging Face's ALBERT always has the projection, and ignores unknown keys. This project needs
    # always_project_embeddings to read the folder again.
    for key, default in (("always_project_embeddings", False), ("tie_word_embeddings", True)):
        if values[key] == default:
            left_out.append(key)
    for key in left_out:
        del values[key]
    activations = {ours: theirs for theirs, ours in HUGGINGFACE_ACTIVATIONS.items()}
    return {
        **values,
        **further,
        "model_type": kind,
        "hidden_act": activations[config.hidden_act],
        "position_embedding_type": "absolute",
        "pad_token_id": 0,
    }


def class_names(values: dict[str, Any], source: str = "config") -> list[str]:
    """The names of the classes in order, from `id2label` of config.json; [] if it has none.

    {"0": "yes", "1": "no"} -> ["yes", "no"]
    """
    names = values.get("id2label") or {}
    if not isinstance(names, dict) or names.keys() != {str(n) for n in range(len(names))}:
        raise UserError(f"{source}: id2label must number its classes from 0: {names!r:.200}")
    if not all(isinstance(name, str) for name in names.values()):
        raise UserError(f"{source}: id2label has names that are not strings: {names!r:.200}")
    return [names[str(n)] for n in range(len(names))]


def num_classes(values: dict[str, Any], source: str = "config") -> int:
    """The number of classes, from `id2label` or `num_labels`; Hugging Face's default is 2."""
    names = class_names(values, source)
    number = len(names) or values.get("num_labels", 2)
    if type(number) is not int or number < 1:
        raise UserError(f"{source}: num_labels must be a positive integer, not {number!r}.")
    return number


def is_multi_label(values: dict[str, Any], source: str = "config") -> bool:
    """Whether a classifier assigns any number of labels, not one class or one number."""
    problem, number = values.get("problem_type"), num_classes(values, source)
    if problem not in (None, REGRESSION, "single_label_classification", MULTI_LABEL):
        raise UserError(
            f"{source}: problem_type is {problem!r}, not 'single_label_classification', "
            f"{MULTI_LABEL!r} or {REGRESSION!r}. To start another model from the encoder alone, "
            "pass the folder to run_finetuning --init_checkpoint."
        )
    if problem == REGRESSION and number > 1:
        raise UserError(
            f"{source}: problem_type 'regression' is supported with one number per text only, not "
            f"{number} (num_labels, id2label)."
        )
    return problem == MULTI_LABEL


def as_groups(config: AlbertConfig) -> AlbertConfig:
    """The same architecture with parameter_sharing="all", for formats that support only groups. If
    nothing is shared, each layer becomes a group.
    """
    if config.parameter_sharing != "none":
        return config
    number = config.num_hidden_layers
    grouped = config.replace(parameter_sharing="all", num_hidden_groups=number)
    # The reference computes a layer's group in floating point, which is wrong for some numbers.
    if any(grouped.group_of_layer(layer, number) != layer for layer in range(number)):
        raise UserError(
            f"with {number} layers the reference's formula does not give each layer its own group, "
            "so unshared weights cannot be expressed as groups."
        )
    return grouped
