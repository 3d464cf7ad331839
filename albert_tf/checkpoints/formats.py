"""The formats of model folders and checkpoints, one class each, and loading from any of them."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import (
    bundle,
    google,
    huggingface,
    huggingface_weights,
    kerashub_weights,
    native,
    sentence_transformers,
    target_tensors,
    vocabulary,
)
from albert_tf.checkpoints.kerashub import KerasHub
from albert_tf.checkpoints.source import Beside, Source
from albert_tf.checkpoints.weights import NOTHING, Allowed
from albert_tf.config import AlbertConfig
from albert_tf.config_file import read_json
from albert_tf.errors import UserError, warn_once
from albert_tf.keras_compat import keras
from albert_tf.models import (
    AlbertClassifier,
    AlbertModel,
    AlbertMultipleChoice,
    AlbertPretrainer,
    AlbertSpanLabeler,
    AlbertSpanPretrainer,
)
from albert_tf.variable_names import variable_name
from data_pipeline.files import atomic_folders

# Patterns of our names for weights that may be missing. Several of Hugging Face's classes have no
# pooler, and most have no sentence-order head. Models whose outputs need neither still load.
WITHOUT_PAIRS = ["^encoder/pooler/", "^sentence_order/"]
# A model that will be trained may start with new heads.
AS_A_START = [*WITHOUT_PAIRS, "^masked_lm/", "^span/"]
# Names of variables outside the encoder, in any format.
NOT_ENCODER = ["^(?!encoder/|(bert|electra)/|(albert|bert|electra|distilbert|model)\\.)"]


class Native(Source):
    """A model folder of this project, or the folder of a run that contains one."""

    format = "native"
    is_own = True

    @classmethod
    def recognize(cls, path: str, names: Collection[str]) -> Source | None:
        if native.METADATA_FILE in names:
            native.read_metadata(path)  # Raises UserError if a file was changed.
            return cls(path, _in(path, native.CONFIG_FILE), vocabulary.find(path))
        of_run = atomic_folders.existing(os.path.join(path, native.RUN_MODEL))
        if tf.io.gfile.exists(os.path.join(of_run, native.METADATA_FILE)):
            return cls.recognize(of_run, tf.io.gfile.listdir(of_run))
        return None

    def metadata(self) -> dict[str, Any]:
        return native.read_metadata(self.path)

    def labels(self) -> list[str] | None:
        return self.metadata().get("labels")

    @property
    def weights_files(self) -> list[str]:
        return _parts(os.path.join(self.path, native.WEIGHTS_PREFIX))

    def make_model(self, config: AlbertConfig) -> keras.Model:
        return native.make_model(self.path, config)

    def load(self, model: keras.Model, allowed: Allowed = NOTHING) -> list[str]:
        return native.load_weights(model, self.path, allowed)

    @classmethod
    def save(cls, model: keras.Model, folder: str, beside: Beside) -> list[str]:
        metadata = {"max_seq_length": model.config.max_position_embeddings, **beside.metadata}
        if beside.labels and "labels" not in metadata:
            # Hugging Face's folders also name the single output of a regression: not a class.
            is_classifier = type(model) is AlbertClassifier and not model.multi_label
            is_number = is_classifier and model.num_classes == 1
            metadata["labels"] = [] if is_number else beside.labels
        native.save(model, folder, metadata, beside.vocab_file, beside.tokenizer)
        return []


class HuggingFace(Source):
    """A folder of Hugging Face's library."""

    format = "huggingface"
    config_name = huggingface.CONFIG_FILE
    may_lack = WITHOUT_PAIRS
    dtypes = huggingface.DTYPES

    @classmethod
    def recognize(cls, path: str, names: Collection[str]) -> Source | None:
        if {huggingface.CONFIG_FILE, *huggingface_weights.WEIGHTS_FILES}.isdisjoint(names):
            return None
        return cls(path, _in(path, huggingface.CONFIG_FILE), vocabulary.find(path))

    def config(self) -> AlbertConfig:
        return huggingface.read_config(self._needed_config())

    def _needed_config(self) -> str:
        """The path of the folder, after checking that it has a config.json."""
        if self.config_file is None:
            raise UserError(
                f"{self.path} has no {self.config_name}, the configuration of its weights. Copy "
                "it there."
            )
        return self.path

    def metadata(self) -> dict[str, Any]:
        values = read_json(self.config_file) if self.config_file else {}
        positions = values.get("max_position_embeddings", 512)  # The default of all kinds.
        found = {
            "model_type": values.get("model_type"),
            "max_seq_length": sentence_transformers.read_length(self.path, positions),
            "origin": huggingface_weights.origin(self.path),
        }
        return {key: value for key, value in found.items() if value is not None}

    def labels(self) -> list[str] | None:
        return huggingface.read_labels(self.path)

    def labels_as(self, labels: Sequence[str]) -> list[str] | None:
        """The names of the classes, in the spelling of `labels`. None if no name is in `labels`:
        they may be other words for the same classes.
        """
        # Hugging Face's folders often list MNLI's classes in a different order than GLUE.
        spelled = {label.lower(): label for label in labels}
        known = [spelled.get(name.lower(), name) for name in huggingface.read_labels(self.path)]
        return None if set(known).isdisjoint(labels) else known

    @property
    def weights_files(self) -> list[str]:
        return huggingface_weights.weights_files(self.path)

    def make_model(self, config: AlbertConfig) -> keras.Model:
        return huggingface.make_model(self._needed_config(), config)

    def load(self, model: keras.Model, allowed: Allowed = NOTHING) -> list[str]:
        return huggingface.load(model, self.path, allowed)

    @classmethod
    def save(cls, model: keras.Model, folder: str, beside: Beside) -> list[str]:
        stated = beside.metadata.get("model_type")
        huggingface.save(model, folder, beside.labels, beside.dtype, stated)
        return _lost(model, stated)

    @classmethod
    def check(cls, model: keras.Model, folder: str, dtype: str) -> str:
        count = target_tensors.check_huggingface(folder, dtype)
        return f", {count} tensors as transformers has them"


@dataclasses.dataclass(frozen=True)
class Google(Source):
    """A TF1 checkpoint of google-research's ALBERT, BERT or ELECTRA, given by its prefix, or by a
    folder that contains only this checkpoint.
    """

    head: str | None = None  # Kind of head, if the weights do not tell: `google.make_model`.
    use_averages: bool = False  # Whether to read the moving averages instead of the weights.

    format = "google"

    @classmethod
    def recognize(cls, path: str, names: Collection[str]) -> Source | None:
        prefix = path
        if tf.io.gfile.isdir(path):
            prefixes = [name.removesuffix(".index") for name in names if name.endswith(".index")]
            if len(prefixes) != 1:
                return None
            prefix = os.path.join(path, prefixes[0])
        bundle.check_exists(prefix)
        folder = os.path.dirname(prefix)
        vocab_file = vocabulary.find(folder, google.VOCABULARY, google.CHINESE_VOCABULARY)
        return cls(prefix, cls._find_config(folder), vocab_file)

    @staticmethod
    def _find_config(folder: str) -> str | None:
        paths = (_in(folder, name) for name in google.CONFIG_FILES.values())
        return next(filter(None, paths), None)

    def config(self) -> AlbertConfig:
        if self.config_file is None and (config := google.electra_config(self.path)):
            return config
        return super().config()

    def metadata(self) -> dict[str, Any]:
        kind = google.GoogleWeights(self.path).kind
        return {} if kind == "albert" else {"model_type": kind}

    @property
    def weights_files(self) -> list[str]:
        return _parts(self.path)

    def make_model(self, config: AlbertConfig) -> keras.Model:
        return google.make_model(self.path, config, self.head)

    def load(self, model: keras.Model, allowed: Allowed = NOTHING) -> list[str]:
        return google.load(model, self.path, allowed, self.use_averages)

    @classmethod
    def save(cls, model: keras.Model, folder: str, beside: Beside) -> list[str]:
        tf.io.gfile.makedirs(folder)
        stated = beside.metadata.get("model_type")
        google.save(model, os.path.join(folder, google.PREFIX), stated)
        labels = ", ".join(beside.labels)
        lines = [f"google cannot store the names of the classes: {labels}"] if labels else []
        return [*lines, *_lost(model, stated)]

    @classmethod
    def check(cls, model: keras.Model, folder: str, dtype: str) -> str:
        classes = getattr(model, "num_classes", 2)
        config_file = cls._find_config(folder)
        assert config_file is not None  # `save` wrote it.
        prefix = os.path.join(folder, google.PREFIX)
        count = target_tensors.check_google(prefix, config_file, type(model).__name__, classes)
        kind = os.path.basename(config_file).partition("_")[0]
        return f", {count} tensors as google-research/{kind} has them"


def _lost(model: AlbertModel, stated: str | None) -> list[str]:
    """A line about parts that ELECTRA cannot store, if the model was not made from one."""
    if huggingface.kind_to_write(model, stated) != "electra" or stated == "electra":
        return []
    return ["It is written as an ELECTRA, which has no pooler and no sentence-order head."]


# The order in which formats are tried on a path.
# KerasHub comes before HuggingFace, which accepts any folder with a config.json.
FORMATS: dict[str, type[Source]] = {
    each.format: each for each in (Native, KerasHub, HuggingFace, Google)
}


def recognize(path: str) -> Source:
    """The model at a path: a model folder of this project, or a run that contains one; a Hugging
    Face folder; a KerasHub preset; the prefix of a google-research checkpoint, or a folder with
    exactly one.
    """
    path = atomic_folders.existing(path.rstrip("/"))
    names = tf.io.gfile.listdir(path) if tf.io.gfile.isdir(path) else []
    for each in FORMATS.values():
        if source := each.recognize(path, names):
            return source
    prefixes = sorted(name.removesuffix(".index") for name in names if name.endswith(".index"))
    raise UserError(
        f"{path} holds no model: neither {native.METADATA_FILE} (a model folder of this project), "
        f"nor {huggingface.WEIGHTS_FILE} (Hugging Face), nor {kerashub_weights.WEIGHTS_FILE} "
        "(KerasHub), nor one checkpoint of google-research "
        f"(files ending in .index: {', '.join(prefixes) or 'none'})."
    )


def _in(folder: str, name: str) -> str | None:
    """Path of a file in a folder; None if there is no such file."""
    path = os.path.join(folder, name)
    return path if tf.io.gfile.exists(path) else None


def _parts(prefix: str) -> list[str]:
    """The data files of a checkpoint."""
    folder, name = os.path.split(prefix)
    names = tf.io.gfile.listdir(folder or ".")  # No glob: the path may hold brackets.
    part = re.compile(re.escape(name) + r"\.data-\d{5}-of-\d{5}")
    return sorted(os.path.join(folder, each) for each in names if part.fullmatch(each))


def load_whole(model: keras.Model, source: Source) -> list[str]:
    """Loads a model that must compute the same as its source. Returns the names of variables that
    the source lacks: only parts that the outputs do not need, which some Hugging Face classes do
    not have. Raises UserError if the outputs need a missing variable.
    """
    new = source.load(model, Allowed(source.may_lack))
    if new and isinstance(model, (AlbertClassifier, AlbertMultipleChoice)):
        raise UserError(
            f"{source.path} lacks {', '.join(new)}, without which {type(model).__name__} cannot "
            "answer. Copy the whole model, or train it from these weights."
        )
    return new


def load_start(model: keras.Model, source: Source) -> None:
    """Loads a model for training with the weights that a source has for it: the encoder, the heads
    of an AlbertPretrainer, and the head of an AlbertSpanLabeler if it was pre-trained. All other
    heads are new. Prints one line about other new parts, and one about a pre-trained span head.
    """
    spans = AlbertSpanPretrainer
    is_pretrained = source.is_own and source.metadata()["task"] == spans.saved_as
    if isinstance(model, AlbertSpanLabeler) and is_pretrained:
        print(f"The span head starts with the weights in {source.path}.", flush=True)
    elif not isinstance(model, AlbertPretrainer):
        model = getattr(model, "encoder", model)
    # Only this project's format stores this model.
    is_foreign = isinstance(model, spans) and not source.is_own
    filled = model.without_spans() if is_foreign else model
    new = source.load(filled, Allowed(AS_A_START, NOT_ENCODER))
    if is_foreign:
        model.take_weights(filled)
        new += [variable_name(variable) for variable in model.span.variables]
    if new:
        warn_once(f"not in {source.path}, and new: {', '.join(new)}")


def round_trip(model: keras.Model, folder: str) -> float:
    """The largest difference of weights and outputs between a model and the written folder. Parts
    that the format cannot store, such as a pooler, are left out.
    """
    source = recognize(folder)
    if isinstance(source, Google):  # Its weights do not tell what a one-output head is for.
        heads = {AlbertClassifier: "classifier", AlbertMultipleChoice: "multiple_choice"}
        source = dataclasses.replace(source, head=heads.get(type(model)))
    copy = source.make_model(source.config())
    lost = source.load(copy, Allowed(source.may_lack))
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
    largest = float(np.max(differences))  # Not `max`, which may drop NaN.
    if not np.isfinite(largest):
        raise UserError(
            f"{folder}: the model's outputs are not finite, and cannot be compared with those of "
            "the written model. Its training had diverged: take an earlier checkpoint."
        )
    return largest
