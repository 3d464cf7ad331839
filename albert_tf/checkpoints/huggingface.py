"""Hugging Face model folders: config.json, model.safetensors, spiece.model or vocab.txt."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints.huggingface_config import (
    check_one_answer,
    class_names,
    num_classes,
    to_huggingface,
)
from albert_tf.checkpoints.huggingface_weights import WEIGHTS_FILE, HuggingFaceWeights
from albert_tf.checkpoints.names import HUGGINGFACE_PROJECTION, check_sharing, variable_names
from albert_tf.checkpoints.weights import assign
from albert_tf.config import AlbertConfig
from albert_tf.config_file import read_json
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import (
    AlbertClassifier,
    AlbertEncoder,
    AlbertMultipleChoice,
    AlbertPretrainer,
    AlbertSpanLabeler,
    AlbertTokenClassifier,
)
from albert_tf.variable_names import variable_name
from data_pipeline.files import atomic_files

CONFIG_FILE = "config.json"
DTYPES = ("float32", "float16")
_SOFTWARE = "Hugging Face's AlbertModel"

# Our class -> theirs, and whether theirs has a pooler.
ARCHITECTURES = {
    "AlbertEncoder": ("AlbertModel", True),
    "AlbertSentenceEncoder": ("AlbertModel", True),
    "AlbertPretrainer": ("AlbertForPreTraining", True),
    "AlbertClassifier": ("AlbertForSequenceClassification", True),
    "AlbertMultipleChoice": ("AlbertForMultipleChoice", True),
    "AlbertSpanLabeler": ("AlbertForQuestionAnswering", False),
    "AlbertTokenClassifier": ("AlbertForTokenClassification", False),
}
_MODELS = {
    "AlbertModel": AlbertEncoder,
    "AlbertForPreTraining": AlbertPretrainer,
    "AlbertForMaskedLM": AlbertPretrainer,
    "AlbertForSequenceClassification": AlbertClassifier,
    "AlbertForMultipleChoice": AlbertMultipleChoice,
    "AlbertForQuestionAnswering": AlbertSpanLabeler,
    "AlbertForTokenClassification": AlbertTokenClassifier,
}
_POOLER = "encoder/pooler/"
_PROJECTION = (f"{HUGGINGFACE_PROJECTION}.weight", f"{HUGGINGFACE_PROJECTION}.bias")
# Copies that some versions write -> what they are copies of.
_COPIES = {
    "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
    "predictions.decoder.bias": "predictions.bias",
}


def load(
    model: keras.Model,
    directory: str,
    allow_missing: Sequence[str] = (),
    allow_unused: Sequence[str] = (),
) -> list[str]:
    """`weights.assign` from a folder. A pooler that Hugging Face's class for the task does not have
    keeps its values.
    """
    stored_names, with_pooler = _stored_names(model)
    if not with_pooler:
        allow_missing = [*allow_missing, f"^{_POOLER}"]
    weights = HuggingFaceWeights(directory)
    if not model.config.has_embedding_projection:
        size = model.config.hidden_size
        # A projection of another shape is of another model, as all that is misshapen will show.
        if not _projects_by_identity(weights) and weights.shapes[_PROJECTION[0]] == [size, size]:
            raise UserError(
                f"{weights.path}: {HUGGINGFACE_PROJECTION} is more than the identity, but the "
                "model has no such layer, as its embedding_size equals its hidden_size. Pass a "
                'configuration with "always_project_embeddings": true, or none: the folder\'s own '
                "is used then."
            )
        allow_unused = [*allow_unused, f"^{re.escape(HUGGINGFACE_PROJECTION)}\\."]
    if isinstance(model, AlbertPretrainer):
        allow_unused = [*allow_unused, *_copies(weights, model.config)]
    return assign(model.variables, weights, stored_names.__getitem__, allow_missing, allow_unused)


def _copies(weights: HuggingFaceWeights, config: AlbertConfig) -> list[str]:
    """The names of stored copies, as regular expressions; a UserError where one is not a copy."""
    copies = {name: original for name, original in _COPIES.items() if name in weights.shapes}
    if not config.tie_word_embeddings:  # Then the table is a weight of the model.
        copies.pop("predictions.decoder.weight", None)
    for name, original in copies.items():
        known = original in weights.shapes
        if not known or not np.array_equal(weights.read(name), weights.read(original)):
            raise UserError(
                f"{weights.path}: {name} differs from {original}, of which {CONFIG_FILE} makes it "
                "a copy, so that the file does not say what the model computes. Of a model with an "
                'output table of its own, set "tie_word_embeddings": false there; of any other, '
                f"remove {name}."
            )
    return [f"^{re.escape(name)}$" for name in copies]


def read_config(directory: str) -> AlbertConfig:
    """The architecture of a folder, by its config.json and its weights."""
    config = AlbertConfig.from_json_file(os.path.join(directory, CONFIG_FILE))
    if config.has_embedding_projection:
        return config
    # Where E == H, config.json does not tell whether the projection matters: the model keeps it
    # unless its weights are the identity, which does nothing.
    is_identity = _projects_by_identity(HuggingFaceWeights(directory))
    return config.replace(always_project_embeddings=not is_identity)


def _projects_by_identity(weights: HuggingFaceWeights) -> bool:
    """Whether the projection of a folder changes nothing, exactly."""
    missing = [name for name in _PROJECTION if name not in weights.shapes]
    if missing:
        raise UserError(
            f"{weights.path} lacks {', '.join(missing)}, which Hugging Face's library always has. "
            "If an older version of this project wrote the folder, convert its source again."
        )
    kernel, bias = (weights.read(name) for name in _PROJECTION)
    return np.array_equal(kernel, np.eye(*kernel.shape)) and not bias.any()


def make_model(directory: str, config: AlbertConfig) -> keras.Model:
    """A model of the class that config.json names in `architectures`, with random weights; a
    UserError for an unknown class.
    """
    path = os.path.join(directory, CONFIG_FILE)
    values = read_json(path)
    names = values.get("architectures") or ["AlbertModel"]
    if names[0] not in _MODELS:
        raise UserError(
            f"{path}: architecture {names[0]!r} is not one of {', '.join(sorted(_MODELS))}."
        )
    kind = _MODELS[names[0]]
    if kind not in (AlbertClassifier, AlbertTokenClassifier):
        return kind(config)
    if kind is AlbertClassifier:
        check_one_answer(values, path)
    rate = values.get("classifier_dropout_prob", 0.1)
    # Theirs: null is the encoder's rate.
    rate = config.hidden_dropout_prob if rate is None else rate
    return kind(config, num_classes(values, path), rate)


def read_labels(directory: str) -> list[str]:
    """The names of a folder's classes in order; [] if it has none."""
    path = os.path.join(directory, CONFIG_FILE)
    return class_names(read_json(path), path)


def save(
    model: keras.Model,
    directory: str,
    labels: Sequence[str] | None = None,
    dtype: str = "float32",
) -> None:
    """Writes config.json and model.safetensors, with exactly Hugging Face's names and shapes.

    Args:
      labels: names of the classes, for config.json.
      dtype: of the weights in the file, one of DTYPES; a weight that it cannot hold is a UserError.
    """
    import safetensors.numpy

    stored_names, with_pooler = _stored_names(model)
    architecture, _ = ARCHITECTURES[type(model).__name__]
    tensors = {}
    for variable in model.variables:
        if variable_name(variable).startswith(_POOLER) and not with_pooler:
            continue
        name, transposed = stored_names[variable_name(variable)]
        value = _cast(variable, dtype)
        tensors[name] = np.ascontiguousarray(value.T if transposed else value)
    if not model.config.has_embedding_projection:
        kernel, bias = _PROJECTION
        size = model.config.hidden_size
        tensors[kernel], tensors[bias] = np.eye(size, dtype=dtype), np.zeros(size, dtype)
    if architecture == "AlbertModel":  # Theirs has no prefix when it stands alone.
        tensors = {name.removeprefix("albert."): value for name, value in tensors.items()}
    tf.io.gfile.makedirs(directory)
    config = {"architectures": [architecture], **to_huggingface(model.config)}
    config.update(_class_settings(model, labels))
    atomic_files.write_json(os.path.join(directory, CONFIG_FILE), config, sort_keys=True)
    content = safetensors.numpy.save(tensors, metadata={"format": "pt"})
    atomic_files.write_bytes(os.path.join(directory, WEIGHTS_FILE), content)


def _cast(variable: tf.Variable, dtype: str) -> np.ndarray:
    """The variable's value in the dtype of the file; UserError where it would overflow."""
    value = variable.numpy()
    limit = np.finfo(dtype).max
    if (np.abs(value) > limit).any():
        raise UserError(
            f"{variable_name(variable)} holds {np.abs(value).max():.3g}; {dtype} ends at "
            f"{limit:.6g}. Write float32."
        )
    return value.astype(dtype)


def _class_settings(model: keras.Model, labels: Sequence[str] | None) -> dict[str, Any]:
    """The keys of config.json that a model with classes adds."""
    if not hasattr(model, "num_classes"):
        return {}
    names = labels or [f"LABEL_{index}" for index in range(model.num_classes)]
    if len(names) != model.num_classes:
        raise UserError(f"{len(names)} names ({', '.join(names)}) for {model.num_classes} classes.")
    is_regression = isinstance(model, AlbertClassifier) and model.num_classes == 1
    return {
        # Without it, their pipeline gives the number's sigmoid.
        **({"problem_type": "regression"} if is_regression else {}),
        "classifier_dropout_prob": model.dropout_rate,
        "id2label": {str(index): name for index, name in enumerate(names)},
        "label2id": {name: index for index, name in enumerate(names)},
    }


def _stored_names(model: keras.Model) -> tuple[dict[str, tuple[str, bool]], bool]:
    """Our name -> (Hugging Face's, whether its transpose is stored); and whether Hugging Face's
    class for the task has a pooler.
    """
    check_sharing(model.config, _SOFTWARE)
    if type(model).__name__ not in ARCHITECTURES:
        raise UserError(
            f"{type(model).__name__} has no counterpart in Hugging Face's library. Use "
            "another format."
        )
    rows = variable_names(model).values()
    stored_names = {
        row.ours: (row.huggingface, row.huggingface_transposed) for row in rows if row.huggingface
    }
    return stored_names, ARCHITECTURES[type(model).__name__][1]
