"""A model folder: configuration, weights, vocabulary and what the model is for. Loads on either
stack.

albert_config.json   the architecture
model.json           task, labels, lengths, and hashes of what it was made from
model.ckpt.*         weights by name
spiece.model, tokenizer.json   the vocabulary and how text is normalised before it
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints import bundle, google
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertClassifier, AlbertPretrainer

CONFIG_FILE = "albert_config.json"
METADATA_FILE = "model.json"
WEIGHTS_PREFIX = "model.ckpt"
VOCABULARY_FILE = "spiece.model"
TOKENIZER_FILE = "tokenizer.json"


def save(
    model: keras.Model,
    directory: str,
    metadata: dict[str, Any],
    vocab_file: str | None = None,
    tokenizer: dict[str, Any] | None = None,
) -> None:
    """Writes a model folder under a temporary name and renames it; an older one is replaced.

    Args:
      model: AlbertPretrainer or AlbertClassifier.
      directory: the folder to write.
      metadata: what model.json says beside task and classes, e.g. labels, max_seq_length, hashes.
      vocab_file: SentencePiece model to copy into the folder.
      tokenizer: how text is normalised before it, for tokenizer.json; goes with `vocab_file`.
    """
    temporary = f"{directory.rstrip('/')}.tmp-{uuid.uuid4().hex[:8]}"
    tf.io.gfile.makedirs(temporary)
    try:
        model.config.to_json_file(os.path.join(temporary, CONFIG_FILE))
        _write_json(os.path.join(temporary, METADATA_FILE), {**_describe(model), **metadata})
        if vocab_file:
            tf.io.gfile.copy(vocab_file, os.path.join(temporary, VOCABULARY_FILE))
            _write_json(os.path.join(temporary, TOKENIZER_FILE), tokenizer)
        bundle.write(os.path.join(temporary, WEIGHTS_PREFIX), bundle.values(model))
        _replace(directory, temporary)
    finally:
        if tf.io.gfile.exists(temporary):
            tf.io.gfile.rmtree(temporary)


def _write_json(path: str, values: Any) -> None:
    with tf.io.gfile.GFile(path, "w") as file:
        file.write(json.dumps(values, indent=2) + "\n")


def _replace(directory: str, new: str) -> None:
    """Renames `new` to `directory`; what was there goes away only once the new folder stands."""
    old = f"{new}-old"
    if tf.io.gfile.exists(directory):
        tf.io.gfile.rename(directory, old)
    tf.io.gfile.rename(new, directory)
    if tf.io.gfile.exists(old):
        tf.io.gfile.rmtree(old)


def _describe(model: keras.Model) -> dict[str, Any]:
    if isinstance(model, AlbertClassifier):
        return {
            "task": "classification",
            "num_classes": model.num_classes,
            "dropout_rate": model.dropout_rate,
        }
    return {"task": "pretraining"}


def read_metadata(directory: str) -> dict[str, Any]:
    """The contents of model.json."""
    path = os.path.join(directory, METADATA_FILE)
    if not tf.io.gfile.exists(path):
        raise UserError(
            f"{directory} is not a model folder: it holds no {METADATA_FILE}. Pass the folder "
            "`model` that run_pretraining or run_classifier wrote."
        )
    with tf.io.gfile.GFile(path) as file:
        return json.load(file)


def read_config(directory: str) -> AlbertConfig:
    """The architecture of a model folder."""
    return AlbertConfig.from_json_file(os.path.join(directory, CONFIG_FILE))


def load_model(directory: str) -> keras.Model:
    """The model of a folder, with its weights.

    Raises:
      UserError: when the folder is no model folder, or its weights do not fit its configuration.
    """
    metadata, config = read_metadata(directory), read_config(directory)
    if metadata["task"] == "classification":
        model = AlbertClassifier(config, metadata["num_classes"], metadata["dropout_rate"])
    else:
        model = AlbertPretrainer(config)
    load_weights(model, directory)
    return model


def load_weights(
    model: keras.Model,
    path: str,
    allow_missing: Sequence[str] = (),
    allow_unused: Sequence[str] = (),
) -> list[str]:
    """Fills a model from a model folder or from the prefix of a google-research checkpoint.

    Arguments, result and errors are those of `checkpoints.google.load`.
    """
    prefix = os.path.join(path, WEIGHTS_PREFIX) if tf.io.gfile.isdir(path) else path
    if google.is_google(prefix):
        return google.load(model, prefix, allow_missing, allow_unused)
    return bundle.assign(
        model.variables,
        prefix,
        lambda ours: ours,
        allow_missing=allow_missing,
        allow_unused=allow_unused,
    )


def load_encoder(model: keras.Model, path: str) -> list[str]:
    """Like load_weights, for a model whose heads are new; the heads that `path` has go unread."""
    heads = {variable.name.split("/")[0] for variable in model.variables} - {"encoder"}
    return load_weights(
        model,
        path,
        allow_missing=[f"^{head}/" for head in sorted(heads)],
        allow_unused=["^masked_lm/", "^sentence_order/", "^classification/", "^cls/", "^output_"],
    )
