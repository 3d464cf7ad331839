"""From a model folder to a checked SavedModel: one table of all tasks of export."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from albert_tf import fast_switch
from albert_tf.checkpoints import native, replacement
from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files
from data_pipeline.tokenizers.base import SETTINGS_FILE, Tokenizer
from data_pipeline.tokenizers.graph import graph_tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer
from data_pipeline.tokenizers.text_graph import TextEncoder
from export import probes
from export.hub import EncoderModule, PreprocessorModule
from export.saved_model import Exported, version_path, write_version
from export.signatures import ClassifierModule, MaskedLMModule

LABELS_FILE = "labels.txt"
TOP_K = 5
_MIN_SEQ_LENGTH = 8


@dataclasses.dataclass(frozen=True)
class LoadedModel:
    """The content of a model folder, ready for export.

    Attributes:
      model: AlbertClassifier or AlbertPretrainer.
      vocabulary: the Python tokenizer.
      labels: C names by class id; empty for a pre-trained model and for a regression.
      max_seq_length: longest sequence that a text becomes.
      folder: a local copy of the files that go along as assets.
    """

    model: Any
    vocabulary: Tokenizer
    labels: tuple[str, ...]
    max_seq_length: int
    folder: str

    def files(self) -> list[str]:
        """Paths of the files that go along as assets."""
        return [os.path.join(self.folder, name) for name in sorted(os.listdir(self.folder))]

    def text_encoder(self, read_masks: bool = False) -> TextEncoder:
        """The graph from texts to inputs of the model; see `TextEncoder`."""
        graph = graph_tokenizer(self.vocabulary)
        return TextEncoder(graph, self.vocabulary, self.max_seq_length, read_masks)


# The module to save, and the probes that it must answer.
Export = tuple[Any, Sequence[probes.Probe]]


def _classifier(loaded: LoadedModel) -> Export:
    module = ClassifierModule(loaded.model, loaded.text_encoder(), loaded.labels, loaded.files())
    asked = probes.classifier_probes(
        loaded.model, loaded.vocabulary, loaded.labels, loaded.max_seq_length
    )
    return module, asked


def _masked_lm(loaded: LoadedModel) -> Export:
    text = loaded.text_encoder(read_masks=True)
    # A model may have more rows than there are pieces, to make its vocabulary divisible.
    unnamed = loaded.model.config.vocab_size - loaded.vocabulary.vocab_size
    pieces = loaded.vocabulary.pieces + [""] * unnamed
    module = MaskedLMModule(loaded.model, text, pieces, loaded.files(), TOP_K)
    asked = probes.masked_lm_probes(loaded.model, loaded.vocabulary, loaded.max_seq_length, TOP_K)
    return module, asked


def _encoder(loaded: LoadedModel) -> Export:
    module = EncoderModule(loaded.model.encoder, loaded.files())
    return module, probes.encoder_probes(
        loaded.model.encoder, loaded.vocabulary, loaded.max_seq_length
    )


def _preprocessor(loaded: LoadedModel) -> Export:
    vocabulary = loaded.vocabulary
    special = {
        "vocab_size": vocabulary.vocab_size,
        "start_of_sequence_id": vocabulary.cls_id,
        "end_of_segment_id": vocabulary.sep_id,
        "padding_id": vocabulary.pad_id,
        "mask_id": vocabulary.mask_id,
    }
    module = PreprocessorModule(loaded.text_encoder(), special, loaded.files())
    return module, probes.preprocessor_probes(vocabulary, loaded.max_seq_length)


@dataclasses.dataclass(frozen=True)
class ExportTask:
    """The export for one task.

    Attributes:
      build: model -> the module to save, and probes with the expected answers.
      model_tasks: tasks of training, as in model.json, whose models can be exported so.
    """

    build: Callable[[LoadedModel], Export]
    model_tasks: tuple[str, ...]


TASKS = {
    "classifier": ExportTask(_classifier, ("classification",)),
    "masked_lm": ExportTask(_masked_lm, ("pretraining",)),
    "encoder": ExportTask(_encoder, ("classification", "pretraining")),
    "preprocessor": ExportTask(_preprocessor, ("classification", "pretraining")),
}


def export_model(
    model_dir: str,
    output_dir: str,
    task: str,
    version: int | None = None,
    max_seq_length: int | None = None,
) -> Exported:
    """Exports a model folder as `<output_dir>/<version>/`.

    Args:
      model_dir: a folder that `albert_tf.checkpoints.native.save` wrote.
      output_dir: the served model's folder; several versions live in it side by side.
      task: a key of TASKS.
      version: a positive integer; None takes the next one.
      max_seq_length: longest sequence that a text becomes; None takes that of model.json, or all
        positions of the model.

    Returns:
      The export's path, signatures and checks.

    Raises:
      UserError: folder, task and numbers do not fit each other.
    """
    model_dir = replacement.existing(model_dir)
    metadata = native.read_metadata(model_dir)
    check_task(task, metadata["task"], model_dir)
    _check_classes(task, metadata, model_dir)
    version_path(output_dir, version)  # Fails before the work, not after it.
    with tempfile.TemporaryDirectory() as folder, fast_switch.switched_off():
        loaded = open_model(model_dir, metadata, max_seq_length, folder)
        module, asked = TASKS[task].build(loaded)
        provenance = {
            "task": task,
            "max_seq_length": loaded.max_seq_length,
            "labels": list(loaded.labels),
            "model_sha256": folder_sha256(model_dir),
            "vocabulary_sha256": loaded.vocabulary.fingerprint,
            "model": metadata,
            "config": loaded.model.config.to_dict(),
            "versions": _versions(),
        }
        return write_version(module, output_dir, version, asked, provenance)


def check_task(task: str, model_task: str, model_dir: str) -> None:
    """Raises UserError unless a model trained for `model_task` can be exported as `task`."""
    if task not in TASKS:
        raise UserError(f"--task={task} is not one of {', '.join(TASKS)}.")
    if model_task not in TASKS[task].model_tasks:
        fitting = [name for name, other in TASKS.items() if model_task in other.model_tasks]
        raise UserError(
            f"--task={task} needs a model for {' or '.join(TASKS[task].model_tasks)}, and "
            f"{model_dir} holds one for {model_task}. Use --task={'|'.join(fitting)}, or another "
            "--model_dir."
        )


def _check_classes(task: str, metadata: dict[str, Any], model_dir: str) -> None:
    """Raises UserError for a regression that is to be exported as a classifier."""
    if task == "classifier" and metadata.get("labels") == []:
        raise UserError(
            f"--task=classifier needs a model with classes, and {model_dir} holds one that answers "
            "with numbers, a regression. Predict with it by albert_tf.run_finetuning "
            "--mode=predict, or export its encoder: --task=encoder."
        )


def open_model(
    model_dir: str, metadata: dict[str, Any], max_seq_length: int | None, folder: str
) -> LoadedModel:
    """Loads a model folder, and copies the files that go along with the export.

    Args:
      model_dir: the model folder.
      metadata: content of its model.json.
      max_seq_length: longest sequence that a text becomes; None: that of training.
      folder: an empty local folder for the files.

    Returns:
      The model with its tokenizer.

    Raises:
      UserError: a file is missing, or vocabulary, labels or length do not fit the model.
    """
    vocab_name = os.path.basename(native.vocabulary_file(model_dir))
    for name in (vocab_name, SETTINGS_FILE, native.CONFIG_FILE):
        path = os.path.join(model_dir, name)
        if not tf.io.gfile.exists(path):
            raise UserError(
                f"{model_dir} lacks {name}, which an export takes along. Copy it there."
            )
        tf.io.gfile.copy(path, os.path.join(folder, name))
    vocabulary = load_tokenizer(os.path.join(folder, vocab_name))
    # An export is the same wherever it is made, also on a GPU, where models pad by default.
    model = native.load_model(model_dir, packed=True)
    if vocabulary.vocab_size > model.config.vocab_size:
        raise UserError(
            f"{vocab_name} of {model_dir} has {vocabulary.vocab_size} pieces, more than the "
            f"model's vocab_size {model.config.vocab_size}. Use the vocabulary that the model was "
            "trained with."
        )
    labels = _labels(metadata, model_dir)
    if labels:
        with open(os.path.join(folder, LABELS_FILE), "w", encoding="utf-8") as file:
            file.write("".join(f"{label}\n" for label in labels))
    length = _length(max_seq_length, metadata, model.config.max_position_embeddings)
    return LoadedModel(model, vocabulary, labels, length, folder)


def _labels(metadata: dict[str, Any], model_dir: str) -> tuple[str, ...]:
    if metadata["task"] != "classification" or metadata.get("labels") == []:
        return ()  # Pre-trained, or a regression.
    classes = metadata["num_classes"]
    labels = tuple(metadata.get("labels") or map(str, range(classes)))
    if len(labels) != classes:
        raise UserError(
            f"model.json of {model_dir} names {len(labels)} labels for {classes} classes. Name "
            "each class once."
        )
    return labels


def _length(wanted: int | None, metadata: dict[str, Any], positions: int) -> int:
    length = metadata.get("max_seq_length", positions) if wanted is None else wanted
    if not _MIN_SEQ_LENGTH <= length <= positions:
        raise UserError(
            f"--max_seq_length={length} should lie between {_MIN_SEQ_LENGTH} and the model's "
            f"{positions} positions."
        )
    return length


def folder_sha256(directory: str) -> str:
    """Hexadecimal SHA-256 over names and contents of a folder's files, in the order of names."""
    digest = hashlib.sha256()
    for name in sorted(tf.io.gfile.listdir(directory)):
        path = os.path.join(directory, name)
        if not tf.io.gfile.isdir(path):
            digest.update(f"{name} {atomic_files.sha256(path)}\n".encode())
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    installed = {}
    for name in ("tensorflow", "tensorflow-text", "sentencepiece"):
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed
