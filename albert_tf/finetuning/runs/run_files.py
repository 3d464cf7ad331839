"""The model folders and files of a fine-tuning run, and the stored outputs that ensembles are made
of.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import formats, native
from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.base import StoredOutputs
from data_pipeline.files import atomic_files, atomic_folders, json_records, storage

BEST_MODEL, LAST_MODEL = native.RUN_MODEL, "last_model"
# Folders next to the models: answers on splits, and the outputs that an ensemble needs.
PREDICTIONS, OUTPUTS = "predictions", "outputs"
_ABOUT = "about"  # Name of the array that holds the origin of the others, as JSON.


def best_folder(output_dir: str) -> str:
    """The model folder of a run that should be used: the best one, or the last one if no
    checkpoint had a score.
    """
    best = os.path.join(output_dir, BEST_MODEL)
    last = os.path.join(output_dir, LAST_MODEL)
    # An interrupted replacement leaves the best model under another name.
    has_best = tf.io.gfile.exists(atomic_folders.existing(best))
    return last if not has_best and tf.io.gfile.exists(last) else best


def answering_folder(run: str, init_checkpoint: str | None) -> str:
    """The model folder that a run predicts with: its `best_folder`, or --init_checkpoint if that is
    one of the run's own models, or if the run has none.
    """
    own = best_folder(run)
    # A training command may be repeated with just another --mode. Its --init_checkpoint is then
    # what the run started from, not the model to predict with.
    if not init_checkpoint:
        return own
    parent = os.path.dirname(init_checkpoint.rstrip("/"))
    is_of_run = os.path.realpath(parent) == os.path.realpath(run)
    if is_of_run or not tf.io.gfile.exists(own):
        return init_checkpoint
    print(f"Predicting with {own}: the run only started from --init_checkpoint={init_checkpoint}.")
    return own


def predictions_path(output_dir: str, task: str, split: str) -> str:
    """Path of the answers on a split, without its ending; its folder is made."""
    path = answers_path(output_dir, task, split)
    tf.io.gfile.makedirs(os.path.dirname(path))
    return path


def answers_path(output_dir: str, task: str, split: str) -> str:
    """Path of the answers on a split, without its ending."""
    return os.path.join(output_dir, PREDICTIONS, f"{task}_{split}")


def outputs_path(output_dir: str, split: str, checkpoint: str) -> str:
    """Path of a model's stored outputs on a split; checkpoint: "best" or "last"."""
    return os.path.join(output_dir, OUTPUTS, f"{split}.{checkpoint}.npz")


def weights_sha256(source: formats.Source) -> str:
    """Hash of a model's weights file; for several files, the hash of their hashes."""
    if not source.weights_files:
        raise UserError(f"{source.path}: the weights file is missing. Copy the model again.")
    hashes = [atomic_files.file_sha256(path) for path in source.weights_files]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Origin:
    """The origin of outputs, which shows whether those of several models belong together.

    Attributes:
      task: name of the task.
      labels: names of the model's classes in order.
      data_sha256: hash of the examples that were answered.
      model_sha256: hash of the model's weights, see `weights_sha256`.
    """

    task: str
    labels: Sequence[str]
    data_sha256: str
    model_sha256: str


def write_outputs(path: str, outputs: StoredOutputs, origin: Origin) -> None:
    """Writes a model's outputs and their origin to one file, atomically; makes its folder."""
    tf.io.gfile.makedirs(os.path.dirname(path))
    # A string array, which `np.load` reads without pickle.
    about = np.array(json.dumps(dataclasses.asdict(origin)))
    with atomic_files.writing(path) as file:
        np.savez(file, **outputs, **{_ABOUT: about})


def read_outputs(path: str) -> tuple[StoredOutputs, Origin]:
    """The stored outputs of a model, and their origin."""
    try:
        with np.load(io.BytesIO(storage.read_bytes(path))) as file:
            outputs = {name: file[name] for name in file.files}
        about = json.loads(str(outputs.pop(_ABOUT)))
        return outputs, json_records.parse(Origin, about, _ABOUT)
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, UserError):
        raise UserError(
            f"{path} is damaged or of another version. Predict with the model again."
        ) from None
