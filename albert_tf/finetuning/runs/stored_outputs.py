"""Outputs of a model in a file with their origin: of these ensembles are made."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.base import StoredOutputs, Task
from data_pipeline.files import atomic_files, storage
from data_pipeline.finetuning.examples import Split

_ABOUT = "about"  # Name of the array that says what the others are of.


def outputs_origin(
    task: Task, labels: Sequence[str], examples: Split, model_sha256: str
) -> dict[str, Any]:
    """The origin of outputs, by which several models' are found to belong together.

    Args:
      task: that was answered.
      labels: names of the model's classes.
      examples: that were answered.
      model_sha256: hash of the model's weights, see `weights_sha256`.

    Returns:
      An object for JSON.
    """
    return {
        "task": task.name,
        "labels": list(labels),
        "data_sha256": examples.sha256(),
        "model_sha256": model_sha256,
    }


def write_outputs(path: str, outputs: StoredOutputs, about: Mapping[str, Any]) -> None:
    """Writes a model's outputs and their `outputs_origin` to one file, atomically."""
    tf.io.gfile.makedirs(os.path.dirname(path))
    with atomic_files.writing(path) as file:
        np.savez(file, **outputs, **{_ABOUT: np.array(json.dumps(dict(about)))})


def read_outputs(path: str) -> tuple[StoredOutputs, dict[str, Any]]:
    """The stored outputs of a model, and their `outputs_origin`.

    Raises:
      UserError: the file is damaged.
    """
    try:
        with np.load(io.BytesIO(storage.read_bytes(path))) as file:
            outputs = {name: file[name] for name in file.files}
        return outputs, json.loads(str(outputs.pop(_ABOUT)))
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise UserError(
            f"{path} is damaged or of another version. Evaluate or predict with the model again."
        ) from None
