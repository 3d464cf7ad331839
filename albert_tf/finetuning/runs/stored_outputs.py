"""Files with a model's outputs and their origin, from which ensembles are made."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import zipfile
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.base import StoredOutputs
from data_pipeline.files import atomic_files, json_records, storage

_ABOUT = "about"  # Name of the array that holds the origin of the others, as JSON.


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
