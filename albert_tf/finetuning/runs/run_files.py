"""The model folders and files of a fine-tuning run, by name."""

from __future__ import annotations

import hashlib
import os

import tensorflow as tf

from albert_tf.checkpoints import formats, native
from albert_tf.errors import UserError
from data_pipeline.files import atomic_files, atomic_folders

BEST_MODEL, LAST_MODEL = native.RUN_MODEL, "last_model"
# Folders next to the models: answers on splits, and the outputs that an ensemble needs.
PREDICTIONS, OUTPUTS = "predictions", "outputs"


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
