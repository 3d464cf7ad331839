"""Hugging Face model folders: config.json, model.safetensors, spiece.model or vocab.txt."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints.huggingface_config import (
    MULTI_LABEL,
    REGRESSION,
    class_names,
    is_multi_label,
    num_classes,
    to_huggingface,
)
from albert_tf.checkpoints.huggingface_weights import WEIGHTS_FILE, HuggingFaceWeights
from albert_tf.checkpoints.names import (
    HUGGINGFACE_PROJECTION,
    KINDS,
    VariableName,
    check_sharing,
    variable_names,
)
from albert_tf.checkpoints.weights import NOTHING, Allowed, assign
from albert_tf.config import AlbertConfig
from albert_tf.config_file import read_json
from albert_tf.errors import UserError
from albert_tf.models import (
    AlbertClassifier,
    AlbertEncoder,
    AlbertModel,
    AlbertMultipleChoice,
    AlbertPretrainer,
    AlbertReplacedTokenDetector,
    AlbertSentenceEncoder,
    AlbertSpanLabeler,
    AlbertTokenClassifier,
)
from albert_tf.variable_names import variable_name
from data_pipeline.files import atomic_files

CONFIG_FILE = "config.json"
DTYPES = ("float32", "float16")
_SOFTWARE = "Hugging Face's AlbertModel"

# Suffixes of Hugging Face's class names -> our classes; `save` takes the first that fits.
_POOLED = {
    "ForPreTraining": AlbertPretrainer,
    "ForSequenceClassification": AlbertClassifier,
    "ForMultipleChoice": AlbertMultipleChoice,
}
_UNPOOLED = {
    "ForMaskedLM": AlbertPretrainer,
    "ForQuestionAnswering": AlbertSpanLabeler,
    "ForTokenClassification": AlbertTokenClassifier,
}
_ENCODER = {"Model": AlbertEncoder}
# Kind of `names.KINDS` -> the prefix of its class names, and their suffixes. ELECTRA and DistilBERT
# have no pooler, and use other heads for classification and multiple choice.
_CLASSES: dict[str, tuple[str, dict[str, Any]]] = {
    "albert": ("Albert", {**_POOLED, **_UNPOOLED, **_ENCODER}),
    "bert": ("Bert", {**_POOLED, **_UNPOOLED, **_ENCODER}),
    "electra": (
        "Electra",
        {"ForPreTraining": AlbertReplacedTokenDetector, **_UNPOOLED, **_ENCODER},
    ),
    "distilbert": ("DistilBert", {**_UNPOOLED, **_ENCODER}),
}
_MODELS = {
    f"{begin}{end}": model for begin, classes in _CLASSES.values() for end, model in classes.items()
}
_POOLER = "encoder/pooler/"
_PROJECTION = (f"{HUGGINGFACE_PROJECTION}.weight", f"{HUGGINGFACE_PROJECTION}.bias")


def kind_to_write(model: AlbertModel, stated: str | None = None) -> str:
    """The kind of a model, one of `names.KINDS`. `stated` is the kind that its weights were read
    from, or None if unknown. It identifies an ELECTRA, whose pooler was never trained.
    """
    config = model.config
    if config.parameter_sharing != "none" or config.inner_group_num != 1:
        return "albert"
    if isinstance(model, AlbertReplacedTokenDetector):
        return "electra"
    if stated == "electra" and not isinstance(model, (AlbertClassifier, AlbertMultipleChoice)):
        return "electra"
    return "albert" if config.has_embedding_projection else "bert"


def load(model: AlbertModel, directory: str, allowed: Allowed = NOTHING) -> list[str]:
    """`weights.assign` from a folder. If Hugging Face's class for the task has no pooler, the
    model's pooler keeps its values.
    """
    weights = HuggingFaceWeights(directory)
    rows = _rows(model, weights.kind)
    _end(model, weights.kind)
    missing, unused = [*allowed.missing], [*allowed.unused]
    if isinstance(model, (AlbertSpanLabeler, AlbertTokenClassifier)):
        missing.append(f"^{_POOLER}")
    if weights.kind == "albert" and not model.config.has_embedding_projection:
        size = model.config.hidden_size
        # A projection of another shape belongs to another model: `assign` reports all shapes.
        if not _projects_by_identity(weights) and weights.shapes[_PROJECTION[0]] == [size, size]:
            raise UserError(
                f"{weights.path}: {HUGGINGFACE_PROJECTION} is not the identity, but the "
                "model has no such layer, since its embedding_size equals its hidden_size. Pass a "
                'configuration with "always_project_embeddings": true, or none, to use the '
                "folder's own."
            )
        unused.append(f"^{re.escape(HUGGINGFACE_PROJECTION)}\\.")
    if isinstance(model, AlbertPretrainer):
        unused += _copies(weights, model.config)
    # A variable that Hugging Face's class does not have is reported under our name.
    stored = {row.ours: (row.huggingface or row.ours, row.huggingface_transposed) for row in rows}
    return assign(model.variables, weights, stored.__getitem__, Allowed(missing, unused))


def _copies(weights: HuggingFaceWeights, config: AlbertConfig) -> list[str]:
    """Regular expressions of the names of stored copies; raises UserError if one differs."""
    _, _, (_, bias), (_, table) = KINDS[weights.kind].masked_lm
    copies = {
        table: f"{weights.kind}.embeddings.word_embeddings.weight",
        table.replace("weight", "bias"): bias,
    }
    # An untied table is a weight of its own, and so is the only bias of a DistilBERT.
    own = {bias} if config.tie_word_embeddings else {bias, table}
    copies = {
        name: original
        for name, original in copies.items()
        if name in weights.shapes and name not in own
    }
    for name, original in copies.items():
        known = original in weights.shapes
        if not known or not np.array_equal(weights.read(name), weights.read(original)):
            raise UserError(
                f"{weights.path}: {name} differs from {original}, but according to {CONFIG_FILE} "
                "it is a copy, so that it is unclear what the model computes. For a model with its "
                'own output table, set "tie_word_embeddings": false there; for any other, '
                f"remove {name}."
            )
    return [f"^{re.escape(name)}$" for name in copies]


def read_config(directory: str) -> AlbertConfig:
    """The architecture of a folder, from its config.json and its weights."""
    path = os.path.join(directory, CONFIG_FILE)
    values = read_json(path)
    weights: HuggingFaceWeights | None = None
    if "model_type" not in values and "embedding_size" not in values:
        # Early BERT files, which are still on the hub, do not state their model_type.
        weights = HuggingFaceWeights(directory)
        values = {**values, "model_type": weights.kind}
    config = AlbertConfig.from_dict(values, path)
    if config.has_embedding_projection or config.parameter_sharing == "none":
        return config
    # If E == H, config.json does not tell whether the projection matters. The model keeps it unless
    # its weights are the identity.
    is_identity = _projects_by_identity(weights or HuggingFaceWeights(directory))
    return config.replace(always_project_embeddings=not is_identity)


def _projects_by_identity(weights: HuggingFaceWeights) -> bool:
    """Whether the projection of a folder is exactly the identity."""
    missing = [name for name in _PROJECTION if name not in weights.shapes]
    if missing:
        raise UserError(
            f"{weights.path} lacks {', '.join(missing)}, which Hugging Face's library always has. "
            "If an older version of this project wrote the folder, convert its source again."
        )
    kernel, bias = (weights.read(name) for name in _PROJECTION)
    return np.array_equal(kernel, np.eye(*kernel.shape)) and not bias.any()


def make_model(directory: str, config: AlbertConfig) -> AlbertModel:
    """A model of the class that config.json names in `architectures`, with random weights; raises
    UserError for an unknown class.
    """
    path = os.path.join(directory, CONFIG_FILE)
    values = read_json(path)
    names = values.get("architectures") or ["AlbertModel"]
    name = names[0] if isinstance(names, list) else names
    if name not in tuple(_MODELS):  # A tuple: the name may be a list, which is not hashable.
        if (stated := values.get("model_type", "albert")) not in tuple(_CLASSES):
            AlbertConfig.from_dict(values, path)  # Its error lists the supported kinds.
        begin, classes = _CLASSES[stated]
        known = ", ".join(f"{begin}{end}" for end in classes)
        raise UserError(
            f"{path}: architecture {name!r} is not one of {known}. To start another model from its "
            "encoder, pass the folder to run_finetuning --init_checkpoint."
        )
    kind = _MODELS[name]
    if kind not in (AlbertClassifier, AlbertTokenClassifier):
        return kind(config)
    is_albert = values.get("model_type", "albert") == "albert"
    key, default = ("classifier_dropout_prob", 0.1) if is_albert else ("classifier_dropout", None)
    rate = values.get(key, default)
    # In Hugging Face's library, null means the encoder's rate.
    rate = config.hidden_dropout_prob if rate is None else rate
    if not isinstance(rate, (int, float)) or not 0 <= rate < 1:
        raise UserError(f"{path}: {key} must be a probability in [0, 1), not {rate!r}.")
    several = {"multi_label": is_multi_label(values, path)} if kind is AlbertClassifier else {}
    return kind(config, num_classes(values, path), rate, **several)


def read_labels(directory: str) -> list[str]:
    """The names of a folder's classes in order; [] if it has none."""
    path = os.path.join(directory, CONFIG_FILE)
    return class_names(read_json(path), path)


def save(
    model: AlbertModel,
    directory: str,
    labels: Sequence[str] | None = None,
    dtype: str = "float32",
    kind: str | None = None,
) -> None:
    """Writes config.json and model.safetensors, with exactly Hugging Face's names and shapes.

    Args:
      labels: names of the classes, for config.json.
      dtype: of the weights in the file, one of DTYPES; UserError if a weight would overflow.
      kind: the kind of `names.KINDS` that the model was made from, if known; see `kind_to_write`.
    """
    import safetensors.numpy

    kind = kind_to_write(model, kind)
    rows = _rows(model, kind)
    end = _end(model, kind)
    stored_names = {row.ours: (row.huggingface, row.huggingface_transposed) for row in rows}
    tensors = {}
    for variable in model.variables:
        name, transposed = stored_names[variable_name(variable)]
        if name is None or (variable_name(variable).startswith(_POOLER) and end in _UNPOOLED):
            continue
        value = _cast(variable, dtype)
        tensors[name] = np.ascontiguousarray(value.T if transposed else value)
    if kind == "albert" and not model.config.has_embedding_projection:
        kernel, bias = _PROJECTION
        size = model.config.hidden_size
        tensors[kernel], tensors[bias] = np.eye(size, dtype=dtype), np.zeros(size, dtype)
    if end == "Model":  # Hugging Face's bare encoder has no prefix.
        tensors = {name.removeprefix(f"{kind}."): value for name, value in tensors.items()}
    tf.io.gfile.makedirs(directory)
    config = {"architectures": [f"{_CLASSES[kind][0]}{end}"], **to_huggingface(model.config, kind)}
    config.update(_class_settings(model, kind, labels))
    atomic_files.write_json(os.path.join(directory, CONFIG_FILE), config, sort_keys=True)
    # This entry tells transformers that PyTorch's classes wrote the file, not TensorFlow's.
    content = safetensors.numpy.save(tensors, metadata={"format": "pt"})
    atomic_files.write_bytes(os.path.join(directory, WEIGHTS_FILE), content)


def _end(model: AlbertModel, kind: str) -> str:
    """The suffix of Hugging Face's class name for a model; UserError if it has no such class."""
    begin, classes = _CLASSES[kind]
    ours = AlbertEncoder if isinstance(model, AlbertSentenceEncoder) else type(model)
    end = next((end for end, each in classes.items() if each is ours), None)
    if end is None:
        raise UserError(
            f"Hugging Face's library has no class {begin}... for {type(model).__name__}. Use "
            "another format."
        )
    return end


def _cast(variable: tf.Variable, dtype: str) -> np.ndarray:
    """The variable's value in the dtype of the file; raises UserError if it would overflow."""
    value = variable.numpy()
    limit = np.finfo(dtype).max
    if (np.abs(value) > limit).any():
        raise UserError(
            f"{variable_name(variable)} holds {np.abs(value).max():.3g}; the maximum of "
            f"{dtype} is {limit:.6g}. Write float32."
        )
    return value.astype(dtype)


def _class_settings(model: AlbertModel, kind: str, labels: Sequence[str] | None) -> dict[str, Any]:
    """The additional keys of config.json for a model with classes."""
    if not hasattr(model, "num_classes"):
        return {}
    names = labels or [f"LABEL_{index}" for index in range(model.num_classes)]
    if len(names) != model.num_classes:
        raise UserError(f"{len(names)} names ({', '.join(names)}) for {model.num_classes} classes.")
    problem = {}
    if isinstance(model, AlbertClassifier):
        if model.multi_label:
            problem = {"problem_type": MULTI_LABEL}
        elif model.num_classes == 1:  # Otherwise transformers' pipeline applies a sigmoid.
            problem = {"problem_type": REGRESSION}
    return {
        **problem,
        ("classifier_dropout_prob" if kind == "albert" else "classifier_dropout"): (
            model.dropout_rate
        ),
        "id2label": {str(index): name for index, name in enumerate(names)},
        "label2id": {name: index for index, name in enumerate(names)},
    }


def _rows(model: AlbertModel, kind: str) -> Collection[VariableName]:
    check_sharing(model.config, _SOFTWARE)
    return variable_names(model, kind).values()
