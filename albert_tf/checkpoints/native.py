"""Model folders, this project's own format: all that is needed to use a model, on either Keras 2.

albert_config.json   the architecture
model.json           task, labels, lengths, hashes of its sources and of all files here
model.ckpt.*         weights by name
spiece.model         (or vocab.txt) the vocabulary
tokenizer_settings.json   how text is normalized before tokenization
"""

from __future__ import annotations

import inspect
import math
import os
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints import bundle, vocabulary
from albert_tf.checkpoints.weights import NOTHING, Allowed, assign
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import (
    AlbertClassifier,
    AlbertEncoder,
    AlbertModel,
    AlbertMultipleChoice,
    AlbertPretrainer,
    AlbertReplacedTokenDetector,
    AlbertSentenceEncoder,
    AlbertSpanLabeler,
    AlbertSpanLabelerV2,
    AlbertSpanPretrainer,
    AlbertTokenClassifier,
)
from albert_tf.models.base import COMMON_SETTINGS
from albert_tf.variable_names import variable_name
from data_pipeline.files import atomic_files, atomic_folders, sealed

CONFIG_FILE = "albert_config.json"
METADATA_FILE = "model.json"
WEIGHTS_PREFIX = "model.ckpt"
RUN_MODEL = "model"  # The model folder in the folder of a run.
_ADVICE = "Copy the folder again, or make it again."

# The task in model.json -> the class of the model.
MODELS: dict[str, type[AlbertModel]] = {
    kind.saved_as: kind
    for kind in (
        AlbertEncoder,
        AlbertPretrainer,
        AlbertSpanPretrainer,
        AlbertReplacedTokenDetector,
        AlbertClassifier,
        AlbertTokenClassifier,
        AlbertMultipleChoice,
        AlbertSpanLabeler,
        AlbertSpanLabelerV2,
        AlbertSentenceEncoder,
    )
}


def save(
    model: keras.Model,
    directory: str,
    metadata: dict[str, Any],
    vocab_file: str | None = None,
    tokenizer: dict[str, Any] | None = None,
) -> None:
    """Writes a model folder. An older one is replaced once the new one is complete.

    Args:
      metadata: entries of model.json besides task and classes, e.g. labels, max_seq_length, hashes;
        a number that is not finite, such as an undefined score, becomes null.
      vocab_file: vocabulary to copy into the folder.
      tokenizer: content of tokenizer_settings.json; goes with `vocab_file`.
    """
    content = {**_describe(model), **_finite(metadata)}
    with atomic_folders.replacing(directory) as new:
        # Recomputation of activations is chosen for each run.
        model.config.replace(recompute=False).to_json_file(os.path.join(new, CONFIG_FILE))
        if vocab_file:
            name = vocabulary.stored_name(vocab_file)
            atomic_files.copy(vocab_file, os.path.join(new, name))
            stored = {**(tokenizer or {}), "vocab_sha256": sealed.hashes_of(new, [name])[name]}
            atomic_files.write_json(os.path.join(new, vocabulary.SETTINGS), stored)
        values = {variable_name(variable): variable.numpy() for variable in model.variables}
        bundle.write(os.path.join(new, WEIGHTS_PREFIX), values)
        # Written last, since it contains the hashes of all other files.
        content = sealed.seal(content, sealed.hashes_of(new, tf.io.gfile.listdir(new)))
        atomic_files.write_json(os.path.join(new, METADATA_FILE), content)


def _describe(model: keras.Model) -> dict[str, Any]:
    """The entries of model.json that depend only on the model: its task and the constructor
    arguments of its class.
    """
    task = next((task for task, kind in MODELS.items() if type(model) is kind), None)
    if task is None:
        raise UserError(
            f"{type(model).__name__} cannot be saved as a model folder. Expected one of "
            f"{', '.join(kind.__name__ for kind in MODELS.values())}; add a class of your own to "
            "albert_tf.checkpoints.native.MODELS."
        )
    # COMMON_SETTINGS (`packed`, `dtype`, frozen parts) belong to a run, not to the model.
    settings = model.get_config().items()
    return {"task": task, **{name: each for name, each in settings if name not in COMMON_SETTINGS}}


def _finite(value: Any) -> Any:
    """The value with None in place of numbers that JSON cannot represent."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_metadata(directory: str) -> dict[str, Any]:
    """The content of model.json, without its hashes. Raises UserError if it or any other file was
    changed; the weights are not checked here.
    """
    # Hashing weights takes seconds, so they are checked when they are loaded, and by `check`.
    return _checked(directory, weights=False)


def check(directory: str) -> None:
    """Raises UserError if any file of a model folder was changed."""
    for weights in (False, True):
        _checked(directory, weights)


def _checked(directory: str, weights: bool) -> dict[str, Any]:
    """The content of model.json, after comparing the weights, or all other files, with its
    hashes.
    """
    directory = atomic_folders.existing(directory)
    path = os.path.join(directory, METADATA_FILE)
    if not tf.io.gfile.exists(path):
        raise UserError(
            f"{directory} is not a model folder: it holds no {METADATA_FILE}. Pass the folder "
            "`model` that run_pretraining or run_finetuning wrote. From a preset, or a checkpoint "
            f"of other software, make one: python -m albert_tf.convert --input={directory} "
            "--format=native --output=FOLDER"
        )
    found = sealed.read(path, _ADVICE)
    names = [name for name in found.hashes if name.startswith(WEIGHTS_PREFIX) == weights]
    found.check(directory, names, _ADVICE)
    return found.values


def read_config(directory: str) -> AlbertConfig:
    """The architecture of a model folder."""
    folder = atomic_folders.existing(directory)
    return AlbertConfig.from_json_file(os.path.join(folder, CONFIG_FILE))


def vocabulary_file(directory: str) -> str:
    """Path of the vocabulary of a model folder; raises UserError if it has none."""
    path = vocabulary.find(atomic_folders.existing(directory))
    if path is None:
        raise UserError(
            f"{directory} holds no vocabulary ({vocabulary.SENTENCEPIECE} or "
            f"{vocabulary.WORDPIECE}). Copy the one that the model was trained with there."
        )
    return path


def make_model(directory: str, config: AlbertConfig, packed: bool | None = None) -> keras.Model:
    """A model of the class that model.json names, with random weights."""
    metadata = read_metadata(directory)
    kind = MODELS[metadata["task"]]
    # model.json also has entries of the run, such as scores: take only the constructor's arguments.
    # (In Python 3.10, the signature of a class without its own constructor is Keras's __new__.)
    names = set(inspect.signature(kind.__init__).parameters) & set(metadata)
    return kind(config, packed=packed, **{name: metadata[name] for name in names})


def load_model(directory: str, packed: bool | None = None) -> keras.Model:
    """The model of a folder, with its weights; raises UserError if it is not a model folder, or is
    damaged.
    """
    read_metadata(directory)  # First, because it checks the hash of the configuration.
    model = make_model(directory, read_config(directory), packed)
    load_weights(model, directory)
    return model


def load_weights(model: keras.Model, directory: str, allowed: Allowed = NOTHING) -> list[str]:
    """`weights.assign` from a model folder, whose names are the model's own."""
    _checked(directory, weights=True)
    prefix = os.path.join(atomic_folders.existing(directory), WEIGHTS_PREFIX)
    weights = bundle.BundleWeights(prefix)
    return assign(model.variables, weights, lambda ours: (ours, False), allowed)
