"""Reads a model folder for export: the model, its tokenizer, and the files to ship with it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.models import AlbertEncoder
from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files
from data_pipeline.tokenizers import file_names
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.graph import graph_tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer
from data_pipeline.tokenizers.text_graph import TextEncoder

LABELS_FILE = "labels.txt"
REGRESSION = "regression"
MIN_SEQ_LENGTH = 8


@dataclasses.dataclass(frozen=True)
class LoadedModel:
    """The content of a model folder, ready for export.

    Attributes:
      model: one of native.MODELS.
      vocabulary: the Python tokenizer.
      labels: C names by class id; empty for models without classes and for a regression.
      max_seq_length: longest sequence, to which texts are truncated.
      folder: a local copy of the files that are exported as assets.
      metadata: the content of model.json.
    """

    model: Any
    vocabulary: Tokenizer
    labels: tuple[str, ...]
    max_seq_length: int
    folder: str
    metadata: dict[str, Any]

    @property
    def encoder(self) -> AlbertEncoder:
        """The model's encoder, or the model itself if it is an encoder."""
        return self.model if isinstance(self.model, AlbertEncoder) else self.model.encoder

    def files(self) -> list[str]:
        """Paths of the files that are exported as assets."""
        return [os.path.join(self.folder, name) for name in sorted(os.listdir(self.folder))]

    def text_encoder(self, read_masks: bool = False) -> TextEncoder:
        """The graph that converts texts to model inputs; see `TextEncoder`."""
        graph = graph_tokenizer(self.vocabulary)
        return TextEncoder(graph, self.vocabulary, self.max_seq_length, read_masks)


def model_kind(metadata: dict[str, Any]) -> str:
    """The kind of a model: the task in model.json, or "regression" if it predicts numbers."""
    task = metadata["task"]
    if task != "classification" or metadata.get("multi_label"):
        return task
    is_number = metadata.get("labels") == [] or metadata["num_classes"] == 1
    return REGRESSION if is_number else task


def open_model(
    model_dir: str,
    metadata: dict[str, Any],
    max_seq_length: int | None,
    folder: str,
    by_hand: Mapping[str, Any] | None = None,
) -> LoadedModel:
    """Loads a model folder, and copies the files to be exported as assets.

    Args:
      metadata: content of its model.json.
      max_seq_length: longest sequence, to which texts are truncated; None: as in training.
      folder: an empty local folder for the files.
      by_hand: tokenizer settings, see `load_tokenizer`, which must not contradict the stored ones.

    Raises:
      UserError: a file is missing, or vocabulary, labels or length do not fit the model.
    """
    vocab_file = native.vocabulary_file(model_dir)
    # This file also holds the settings in `by_hand`; the tokenizer copy below is loaded with it.
    settings = load_tokenizer(vocab_file, **(by_hand or {})).settings_json()
    atomic_files.write_bytes(os.path.join(folder, file_names.SETTINGS), settings)
    vocab_name, config = os.path.basename(vocab_file), os.path.join(model_dir, native.CONFIG_FILE)
    if not tf.io.gfile.exists(config):
        raise UserError(
            f"{model_dir} lacks {native.CONFIG_FILE}, which an export includes. Copy it there."
        )
    for path in (vocab_file, config):
        atomic_files.copy(path, os.path.join(folder, os.path.basename(path)))
    # Load the copy, since the tokenizer's file becomes an asset of the graph.
    vocabulary = load_tokenizer(os.path.join(folder, vocab_name))
    # Exports must be the same on every machine; on a GPU, models would pad by default.
    model = native.load_model(model_dir, packed=True)
    if vocabulary.vocab_size > model.config.vocab_size:
        raise UserError(
            f"{vocab_name} of {model_dir} has {vocabulary.vocab_size} pieces, more than the "
            f"model's vocab_size {model.config.vocab_size}. Use the vocabulary that the model was "
            "trained with."
        )
    labels = _labels(metadata, model_dir)
    if labels:
        text = "".join(f"{label}\n" for label in labels)
        atomic_files.write_text(os.path.join(folder, LABELS_FILE), text)
    length = _length(max_seq_length, metadata, model.config.max_position_embeddings)
    return LoadedModel(model, vocabulary, labels, length, folder, metadata)


def _labels(metadata: dict[str, Any], model_dir: str) -> tuple[str, ...]:
    classes = metadata.get("num_classes", 0)
    if classes == 0 or model_kind(metadata) == REGRESSION:
        return ()
    labels = tuple(metadata.get("labels") or map(str, range(classes)))
    if len(labels) != classes:
        raise UserError(
            f"model.json of {model_dir} names {len(labels)} labels for {classes} classes. Name "
            "each class once."
        )
    return labels


def _length(wanted: int | None, metadata: dict[str, Any], positions: int) -> int:
    length = metadata.get("max_seq_length", positions) if wanted is None else wanted
    if not MIN_SEQ_LENGTH <= length <= positions:
        raise UserError(
            f"--max_seq_length={length} should be between {MIN_SEQ_LENGTH} and the model's "
            f"{positions} positions."
        )
    return length
