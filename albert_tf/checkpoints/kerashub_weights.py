"""The weights of KerasHub's presets: their names, and the HDF5 files."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.models import AlbertModel
from albert_tf.variable_names import variable_name
from data_pipeline.files import atomic_files, storage

WEIGHTS_FILE, SHARDS_FILE = "model.weights.h5", "model.weights.json"
TASK_WEIGHTS_FILE = "task.weights.h5"
PROJECTION = f"{WEIGHTS_FILE}/layers/dense"
_ATTENTION, _HEAD = "_self_attention_layer", f"{TASK_WEIGHTS_FILE}/layers/masked_lm_head"
# Our layers and tables -> KerasHub's layers, whose variables are numbered.
_ENCODER = {
    "embeddings/word_embeddings": "reversible_embedding",
    "embeddings/position_embeddings": "position_embedding",
    "embeddings/token_type_embeddings": "embedding",
    "embeddings/layer_norm": "layer_normalization",
    "embeddings/projection": "dense",
    "pooler": "dense_1",
}
_BLOCK = {
    "attention/query": f"{_ATTENTION}/query_dense",
    "attention/key": f"{_ATTENTION}/key_dense",
    "attention/value": f"{_ATTENTION}/value_dense",
    "attention/output": f"{_ATTENTION}/output_dense",
    "attention/layer_norm": "_self_attention_layer_norm",
    "ffn/intermediate": "_feedforward_intermediate_dense",
    "ffn/output": "_feedforward_output_dense",
    "ffn/layer_norm": "_feedforward_layer_norm",
}
_HEADS = {
    "masked_lm/transform": f"{_HEAD}/_intermediate_dense",
    "masked_lm/layer_norm": f"{_HEAD}/_intermediate_layer_norm",
    "masked_lm/output_bias": _HEAD,
    "classification/logits": f"{TASK_WEIGHTS_FILE}/layers/dense",
}
_NUMBERS = {"kernel": 0, "bias": 1, "gamma": 0, "beta": 1}


def stored_names(config: AlbertConfig) -> dict[str, str]:
    """Our name -> KerasHub's file and the path in it, for all layers that KerasHub has."""
    parts = {f"encoder/{ours}": f"layers/{theirs}" for ours, theirs in _ENCODER.items()}
    inner_ones = config.inner_group_num
    for group in range(max(config.num_attention_groups, config.num_ffn_groups)):
        for inner in range(inner_ones):
            number = group * inner_ones + inner
            layer = "transformer_encoder" + (f"_{number}" if number else "")
            for ours, theirs in _BLOCK.items():
                name = f"encoder/transformer/group_{group}_inner_{inner}_{ours}"
                parts[name] = f"layers/{layer}/{theirs}"
    layers = {name: f"{WEIGHTS_FILE}/{path}" for name, path in parts.items()} | _HEADS
    names = {ours: f"{theirs}/vars/0" for ours, theirs in layers.items()}  # Tables.
    for ours, theirs in layers.items():
        names |= {f"{ours}/{kind}": f"{theirs}/vars/{at}" for kind, at in _NUMBERS.items()}
    return names


def _as_matrix(name: str, value: np.ndarray) -> np.ndarray:
    """The value with the heads merged into one axis: [H, N, H/N] -> [H, H], [N, H/N] -> [H]."""
    if f"/{_ATTENTION}/" not in name:
        return value
    if "/output_dense/" in name:
        return value if value.ndim == 1 else value.reshape(-1, value.shape[-1])
    return value.reshape(*value.shape[:-2], -1)


class KerasHubWeights:
    """The weights of a preset, by names that start with the file name; see `weights.Weights`."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, WEIGHTS_FILE)
        if not tf.io.gfile.exists(self.path):
            raise UserError(
                f"{directory} has no {WEIGHTS_FILE}; several files with {SHARDS_FILE} are not "
                "supported. Save it again: backbone.save_to_preset(FOLDER, max_shard_size=None)."
            )
        self._values = _read(directory, WEIGHTS_FILE)
        if tf.io.gfile.exists(os.path.join(directory, TASK_WEIGHTS_FILE)):
            self._values |= _read(directory, TASK_WEIGHTS_FILE)
        self.shapes = {name: list(value.shape) for name, value in self._values.items()}

    def read(self, name: str) -> np.ndarray:
        """One weight, as float32."""
        return self._values[name].astype(np.float32)

    def projects_by_identity(self) -> bool:
        """Whether the projection of the embeddings, which KerasHub always has, is the identity."""
        kernel, bias = (self._values.get(f"{PROJECTION}/vars/{at}") for at in (0, 1))
        if kernel is None or bias is None:
            return False
        return np.array_equal(kernel, np.eye(*kernel.shape)) and not bias.any()


def _read(directory: str, file_name: str) -> dict[str, np.ndarray]:
    import h5py

    path, found = os.path.join(directory, file_name), {}

    def visit(name: str, each: Any) -> None:
        # Keras stores the slots of a compiled model's optimizer in the same file.
        if isinstance(each, h5py.Dataset) and not name.startswith("optimizer/"):
            stored, value = f"{file_name}/{name}", each[()]
            if each.attrs.get("dtype") == "bfloat16":  # HDF5 stores it as two raw bytes.
                value = value.view(tf.bfloat16.as_numpy_dtype)
            found[stored] = _as_matrix(stored, value)

    # h5py opens local files only, and the path may be on gs://.
    content = io.BytesIO(storage.read_bytes(path))
    try:
        with h5py.File(content, "r") as opened:
            opened.visititems(visit)
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise UserError(f"{path} is damaged or not a Keras file: {error}. Copy it again.") from None
    return found


def write(model: AlbertModel, folder: str) -> int:
    """Writes the weights files, without variables that KerasHub's classes do not have. Returns the
    number of parameters of the backbone.
    """
    import h5py

    names, values = stored_names(model.config), {}
    for variable in model.variables:
        ours = variable_name(variable)
        if ours in names:
            values[names[ours]] = _with_heads(names[ours], variable.numpy(), model.config)
    # KerasHub always has this layer; the identity leaves the embeddings as they are.
    if not model.config.has_embedding_projection:
        size = model.config.hidden_size
        values[f"{PROJECTION}/vars/0"] = np.eye(size, dtype=np.float32)
        values[f"{PROJECTION}/vars/1"] = np.zeros(size, np.float32)
    for file_name in (WEIGHTS_FILE, TASK_WEIGHTS_FILE):
        own = {name: value for name, value in values.items() if name.startswith(f"{file_name}/")}
        content = io.BytesIO()
        with h5py.File(content, "w") as file:
            for name, value in own.items():
                file.create_dataset(name.removeprefix(f"{file_name}/"), data=value)
        if own:
            atomic_files.write_bytes(os.path.join(folder, file_name), content.getvalue())
    return sum(value.size for name, value in values.items() if name.startswith(WEIGHTS_FILE))


def _with_heads(name: str, value: np.ndarray, config: AlbertConfig) -> np.ndarray:
    """The inverse of `_as_matrix`."""
    if f"/{_ATTENTION}/" not in name:
        return value
    number = config.num_attention_heads
    if "/output_dense/" in name:
        return value.reshape(number, -1, value.shape[-1]) if value.ndim == 2 else value
    return value.reshape(*value.shape[:-1], number, -1)
