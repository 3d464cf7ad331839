"""The format of a model folder or checkpoint, recognized by its files; loading from any of them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import (
    bundle,
    google,
    huggingface,
    huggingface_weights,
    native,
    replacement,
    vocabulary,
)
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError, warn_once
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertClassifier, AlbertMultipleChoice, AlbertPretrainer
from albert_tf.variable_names import variable_name

FORMATS = ("native", "google", "huggingface")


class Source(NamedTuple):
    """A model folder or a checkpoint, with the files next to its weights.

    Attributes:
      format: one of FORMATS.
      path: a folder, or for "google" the prefix of a checkpoint.
      config_file: path of its configuration, if there is one.
      vocab_file: path of its vocabulary, if there is one.
    """

    format: str
    path: str
    config_file: str | None
    vocab_file: str | None

    def config(self) -> AlbertConfig:
        """The architecture; a UserError where there is no configuration next to the weights."""
        if self.config_file is None:
            name = huggingface.CONFIG_FILE if self.format == "huggingface" else native.CONFIG_FILE
            raise UserError(f"{self.path} has no {name} next to it. Pass --config_file.")
        if self.format == "huggingface":
            return huggingface.read_config(self.path)
        return AlbertConfig.from_json_file(self.config_file)

    @property
    def weights_files(self) -> list[str]:
        """The files with the values of the weights: one, or the parts of a large checkpoint."""
        if self.format == "huggingface":
            return huggingface_weights.weights_files(self.path)
        native_prefix = os.path.join(self.path, native.WEIGHTS_PREFIX)
        folder, name = os.path.split(native_prefix if self.format == "native" else self.path)
        names = tf.io.gfile.listdir(folder or ".")  # No glob: the path may hold brackets.
        part = re.compile(re.escape(name) + r"\.data-\d{5}-of-\d{5}")
        return sorted(os.path.join(folder, each) for each in names if part.fullmatch(each))


def recognize(path: str) -> Source:
    """The model folder or checkpoint at a path.

    Args:
      path: a model folder of this project, or of a run that has its model; a Hugging Face folder;
        the prefix of a checkpoint of google-research, or a folder with exactly one such checkpoint.

    Raises:
      UserError: the path is neither.
    """
    path = replacement.existing(path.rstrip("/"))
    if not tf.io.gfile.isdir(path):
        return _at_prefix(path)
    names = set(tf.io.gfile.listdir(path))
    if native.METADATA_FILE in names:
        native.read_metadata(path)  # An error where a file was changed.
        return Source("native", path, _in(path, native.CONFIG_FILE), vocabulary.find(path))
    model_of_run = os.path.join(path, native.RUN_MODEL)
    if tf.io.gfile.exists(os.path.join(replacement.existing(model_of_run), native.METADATA_FILE)):
        return recognize(model_of_run)
    if names & {huggingface.CONFIG_FILE, *huggingface_weights.WEIGHTS_FILES}:
        config_file = _in(path, huggingface.CONFIG_FILE)
        return Source("huggingface", path, config_file, vocabulary.find(path))
    prefixes = [name[: -len(".index")] for name in names if name.endswith(".index")]
    if len(prefixes) == 1:
        return _at_prefix(os.path.join(path, prefixes[0]))
    raise UserError(
        f"{path} holds no model: neither {native.METADATA_FILE} (a model folder of this project), "
        f"nor {huggingface.WEIGHTS_FILE} (Hugging Face), nor one checkpoint of google-research "
        f"(files ending in .index: {', '.join(sorted(prefixes)) or 'none'})."
    )


def _at_prefix(prefix: str) -> Source:
    """A checkpoint of google-research, with the files next to it."""
    bundle.check_exists(prefix)
    folder = os.path.dirname(prefix)
    vocab_file = vocabulary.find(folder, google.VOCABULARY, google.CHINESE_VOCABULARY)
    return Source("google", prefix, _in(folder, native.CONFIG_FILE), vocab_file)


def _in(folder: str, name: str) -> str | None:
    """Path of a file in a folder, if it is there."""
    path = os.path.join(folder, name)
    return path if tf.io.gfile.exists(path) else None


# What weights may lack, as patterns of our names. Several of Hugging Face's classes have no pooler,
# and most have no head of sentence order: a model whose answers need neither goes without.
WITHOUT_PAIRS = ["^encoder/pooler/", "^sentence_order/"]
# A model that is to be trained may begin with new heads.
AS_A_START = [*WITHOUT_PAIRS, "^masked_lm/"]
# Names that are not those of an encoder, in any format.
NOT_ENCODER = ["^(?!encoder/|bert/|albert\\.)"]


def make_model(source: Source, config: AlbertConfig, head: str | None = None) -> keras.Model:
    """A model of the class that a source's weights are for, with random weights.

    Native folders and Hugging Face's configurations name the class; the reference's checkpoints
    tell it by the names of their heads, except for heads of one output: see `google.make_model`.
    """
    if head and source.format != "google":
        raise UserError(
            f"--head={head} is for checkpoints of google-research, and {source.path} names its "
            "class itself. Leave it out."
        )
    if source.format == "native":
        return native.make_model(source.path, config)
    if source.format == "huggingface":
        return huggingface.make_model(source.path, config)
    return google.make_model(source.path, config, head)


def class_names(source: Source) -> list[str]:
    """The names of the classes of a source in order; [] where it names none."""
    if source.format == "native":
        return native.read_metadata(source.path).get("labels") or []
    return huggingface.read_labels(source.path) if source.format == "huggingface" else []


def load_weights(
    model: keras.Model,
    path: str,
    allow_missing: Sequence[str] = (),
    allow_unused: Sequence[str] = (),
    use_averages: bool = False,
) -> list[str]:
    """Fills a model from a path of any format.

    Args:
      path: see `recognize`.
      model, allow_missing, allow_unused, use_averages: see `checkpoints.google.load`.

    Returns:
      Names of the variables that kept their values.

    Raises:
      UserError: see `recognize` and `checkpoints.google.load`; or averages are asked for, which
        google-research's format alone has.
    """
    source = recognize(path)
    if source.format == "google":
        return google.load(model, source.path, allow_missing, allow_unused, use_averages)
    if use_averages:
        raise UserError(
            f"--use_averages is for checkpoints of google-research, and {path} is of the format "
            f"{source.format}. Leave it out."
        )
    load = native.load_weights if source.format == "native" else huggingface.load
    return load(model, source.path, allow_missing, allow_unused)


def load_whole(model: keras.Model, source: Source, use_averages: bool = False) -> list[str]:
    """Fills a model that is to answer as its source does, and returns names of what is new: parts
    that its answers do not need and that a class of Hugging Face's does not have.

    Raises:
      UserError: see `load_weights`; or the answers need what is missing.
    """
    lacks = WITHOUT_PAIRS if source.format == "huggingface" else ()
    new = load_weights(model, source.path, lacks, use_averages=use_averages)
    if new and isinstance(model, (AlbertClassifier, AlbertMultipleChoice)):
        raise UserError(
            f"{source.path} lacks {', '.join(new)}, on which every answer of "
            f"{type(model).__name__} rests. Copy the whole model, or train it from these weights."
        )
    return new


def load_start(model: keras.Model, path: str) -> None:
    """Fills a model that is to be trained with what a path has of it: the encoder, and of an
    AlbertPretrainer the heads; all other heads are new. What else is new is said in one line.

    Raises:
      UserError: see `load_weights`.
    """
    if not isinstance(model, AlbertPretrainer):
        model = getattr(model, "encoder", model)
    if new := load_weights(model, path, AS_A_START, NOT_ENCODER):
        warn_once(f"not in {path}, and new: {', '.join(new)}")


def round_trip(model: keras.Model, folder: str) -> float:
    """The largest difference of weights and outputs between a model and the written folder.

    A pooler that the format has no place for is left out.
    """
    source = recognize(folder)
    copy = make_model(source, source.config())
    lost = load_weights(copy, source.path, WITHOUT_PAIRS if source.format == "huggingface" else ())
    pairs = [
        (left, right)
        for left, right in zip(model.variables, copy.variables, strict=True)
        if variable_name(right) not in lost
    ]
    ids = tf.range(min(16, model.config.max_position_embeddings))[None] % model.config.vocab_size
    inputs = {
        "input_word_ids": ids,
        "input_mask": tf.ones_like(ids),
        "input_type_ids": tf.zeros_like(ids),
    }
    outputs = [getattr(one, "encoder", one)(inputs)["sequence_output"] for one in (model, copy)]
    differences = [np.max(np.abs(left - right)) for left, right in [*pairs, outputs]]
    largest = float(np.max(differences))  # Not `max`, which drops NaN.
    if not np.isfinite(largest):
        raise UserError(
            f"{folder}: the model's outputs are not finite, and cannot be compared with those of "
            "what was written. Its training had diverged: take an earlier checkpoint."
        )
    return largest
