"""The weights in a Hugging Face folder, by the names of its PyTorch classes, from any of these:

model.safetensors               of PyTorch classes, or of TensorFlow's (names ending in ":0")
model.safetensors.index.json    the same in several files
tf_model.h5                     of TensorFlow's classes

Nothing is ever unpickled: for a folder with only pytorch_model.bin, the error says what to do.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints.names import KINDS
from albert_tf.config_file import read_json
from albert_tf.errors import UserError
from data_pipeline.files import storage

WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = f"{WEIGHTS_FILE}.index.json"
H5_FILE = "tf_model.h5"
WEIGHTS_FILES = (WEIGHTS_FILE, INDEX_FILE, H5_FILE)  # The first one in the folder is read.
# NumPy, and therefore safetensors.numpy, does not support bfloat16.
_DTYPES = {
    "BF16": tf.bfloat16.as_numpy_dtype,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    **{f"I{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"U{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    "BOOL": np.bool_,
}
# Buffers that some versions write (0, 1, 2, ... and zeros), not weights.
_BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
# Suffix of a name in TensorFlow's classes -> PyTorch's suffix, and whether to transpose.
_ENDS = {
    "kernel": ("weight", True),
    "gamma": ("weight", False),
    "beta": ("bias", False),
    "embeddings": ("weight", False),
    "weight": ("weight", False),
    "bias": ("bias", False),
}
# Top-level parts of TensorFlow's classes; some files prefix them with the model's name.
_PARTS = (
    *("albert", "predictions", "sop_classifier", "classifier", "qa_outputs"),
    *("bert", "mlm___cls", "nsp___cls", "electra", "discriminator_predictions"),
    *("generator_predictions", "generator_lm_head"),
)
# Parts of names in files of old versions and of TensorFlow's classes -> current names.
_RENAMED = {
    "LayerNorm.gamma": "LayerNorm.weight",
    "LayerNorm.beta": "LayerNorm.bias",
    "mlm___cls.": "cls.",
    "nsp___cls.": "cls.",
}
# Prefix of a name in a bare encoder, whose names do not begin with the model -> the kind of model.
# The first entry that matches any name decides.
_SIGNS = {
    "encoder.albert_layer_groups.": "albert",
    "embeddings_project.": "electra",
    "encoder.layer.": "bert",
    "transformer.layer.": "distilbert",
}
_IN_CACHE = re.compile(r"models--([^/]+)/snapshots/([0-9a-f]{40})/?$")
_REMEDY = "AutoModel.from_pretrained(...).save_pretrained(..., safe_serialization=True)."
Tensors = dict[str, np.ndarray]


class HuggingFaceWeights:
    """The weights of a folder by the names of PyTorch's classes with heads. `path` is the file that
    holds them, or the index that names the files; `kind` is one of `names.KINDS`.

    Names of a bare encoder get the prefix that models with heads have: "pooler.weight" ->
    "albert.pooler.weight".
    """

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, _weights_file(directory))
        read = {WEIGHTS_FILE: _read_safetensors, INDEX_FILE: _read_shards, H5_FILE: _read_h5}
        found = read[os.path.basename(self.path)](self.path)
        if any(name.endswith(":0") for name in found):
            found = _of_tensorflow(found, self.path)
        self.kind, prefix = _kind(found)
        self._tensors = {
            prefix + _renamed(name): value
            for name, value in found.items()
            if not name.endswith(_BUFFERS)
        }
        if self.kind == "distilbert":  # It has no segment embeddings; zeros are equivalent.
            words = self._tensors.get(
                "distilbert.embeddings.word_embeddings.weight", np.zeros([0, 0])
            )
            types = np.zeros([2, words.shape[1]], np.float32)
            self._tensors["distilbert.embeddings.token_type_embeddings.weight"] = types
        self.shapes = {name: list(value.shape) for name, value in self._tensors.items()}

    def read(self, name: str) -> np.ndarray:
        """One weight, as float32."""
        return self._tensors[name].astype(np.float32)


def _kind(names: Collection[str]) -> tuple[str, str]:
    """The kind of model with weights of these names, and the prefix that all names lack."""
    for kind in KINDS:
        if any(name.startswith(f"{kind}.") for name in names):
            return kind, ""
    for sign, kind in _SIGNS.items():
        if any(name.startswith(sign) for name in names):
            return kind, f"{kind}."
    return "albert", "albert."


def _renamed(name: str) -> str:
    for then, now in _RENAMED.items():
        name = name.replace(then, now)
    return name


def weights_files(directory: str) -> list[str]:
    """Paths of the files that hold a folder's weights."""
    path = os.path.join(directory, _weights_file(directory))
    if not path.endswith(INDEX_FILE):
        return [path]
    return [os.path.join(directory, name) for name in sorted(set(_read_index(path).values()))]


def origin(directory: str) -> dict[str, Any] | None:
    """The repository, the commit and the SHA-256 of each weights file, if the folder is in the
    hub's cache: .../models--org--name/snapshots/COMMIT, with links to files named by their hash.
    """
    found = _IN_CACHE.search(directory)
    if found is None:
        return None
    files = [path for path in weights_files(directory) if os.path.islink(path)]
    hashes = {os.path.basename(path): os.path.basename(os.readlink(path)) for path in files}
    return {"repository": found[1].replace("--", "/"), "revision": found[2], "sha256": hashes}


def _weights_file(directory: str) -> str:
    """The name of the file to read, chosen as transformers does."""
    names = tf.io.gfile.listdir(directory)
    adapters = [name for name in names if name.startswith("adapter_")]
    if adapters:
        raise UserError(
            f"{directory} holds {adapters[0]}, of an adapter, which changes the answers of the "
            "model that it was trained on and is not supported. Merge it into the model first: "
            "PeftModel.merge_and_unload().save_pretrained(...)."
        )
    for name in WEIGHTS_FILES:
        if name in names:
            return name
    pickled = [name for name in names if name.endswith((".bin", ".pt", ".pth"))]
    if pickled:
        raise UserError(
            f"{directory} holds {pickled[0]}, a pickle, which can run any code and is never "
            f"loaded here. Save it as {WEIGHTS_FILE} first: {_REMEDY}"
        )
    ends = (".safetensors", ".h5", ".h5.index.json", ".msgpack", ".onnx")
    others = [name for name in sorted(names) if name.endswith(ends)]
    found = f" {', '.join(others)} cannot be read." if others else ""
    raise UserError(
        f"{directory} holds none of {', '.join(WEIGHTS_FILES)}.{found} Copy the weights there, or "
        f"save them again with transformers: {_REMEDY}"
    )


def _content(path: str) -> bytes:
    if tf.io.gfile.isdir(path):
        raise UserError(f"{path} is a folder, not a file. Copy it again.")
    return storage.read_bytes(path)


def _read_safetensors(path: str) -> Tensors:
    import safetensors

    content = _content(path)
    try:
        found = dict(safetensors.deserialize(content))
    except Exception as error:  # safetensors raises its own class, struct.error, ValueError.
        raise UserError(
            f"{path} is damaged or not a safetensors file: {error}. Copy it again."
        ) from None
    return {name: _array(path, name, tensor) for name, tensor in found.items()}


def _array(path: str, name: str, tensor: Mapping[str, Any]) -> np.ndarray:
    """The array of a stored tensor: {"dtype": "BF16", "shape": [2], "data": b"..."}."""
    dtype = tensor["dtype"]
    if dtype not in _DTYPES:
        raise UserError(
            f"{path}: {name} has type {dtype}; expected one of {', '.join(_DTYPES)}. Save "
            "the model in float32, float16 or bfloat16."
        )
    return np.frombuffer(tensor["data"], _DTYPES[dtype]).reshape(tensor["shape"])


def _read_index(path: str) -> dict[str, str]:
    """Name of a weight -> name of the file in the folder that holds it."""
    files: Any = read_json(path).get("weight_map")
    names = files.values() if isinstance(files, dict) else [None]
    # A name that contains a path could point outside of the folder.
    if not all(isinstance(name, str) and os.path.basename(name) == name for name in names):
        raise UserError(
            f"{path} has no weight_map from weights to files in its folder. Copy it again."
        )
    return {_in_model(name): file for name, file in files.items()}


def _in_model(name: str) -> str:
    """The name without the name of the model: "tf_albert_model/albert/pooler/bias:0" ->
    "albert/pooler/bias:0".
    """
    # TensorFlow's classes write the model's name into the index, but not into the files.
    words = name.split("/")
    start = next((place for place, word in enumerate(words) if word in _PARTS), 0)
    return "/".join(words[start:])


def _read_shards(path: str) -> Tensors:
    """The weights of all files of an index; each file must hold exactly what the index lists."""
    expected, found = _read_index(path), {}
    for file in sorted(set(expected.values())):
        shard = os.path.join(os.path.dirname(path), file)
        if not tf.io.gfile.exists(shard):
            raise UserError(f"{path} names {file}, which is missing. Copy it there.")
        tensors = _read_safetensors(shard)
        names = {name for name, place in expected.items() if place == file}
        wrong = sorted(names ^ tensors.keys())
        if wrong:
            raise UserError(
                f"{shard} and {os.path.basename(path)} disagree on the place of "
                f"{', '.join(wrong[:5])}. Copy all files of the model again."
            )
        found.update(tensors)
    return found


def _read_h5(path: str) -> Tensors:
    """The weights of a file that Keras wrote."""
    import h5py

    # h5py opens local files only, and the path may be on gs://.
    content = io.BytesIO(_content(path))
    found: Tensors = {}
    try:
        with h5py.File(content, "r") as file:
            for name, value in _datasets(file):
                # The file contains some weights twice.
                if not np.array_equal(found.setdefault(name, value), value, equal_nan=True):
                    raise UserError(f"{path} holds {name} twice, with different values.")
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise UserError(f"{path} is damaged or not a Keras file: {error}. Copy it again.") from None
    return found


def _datasets(file: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Names and values of the weights of each layer."""
    for layer in file.attrs["layer_names"]:
        group = file[layer]
        for name in group.attrs["weight_names"]:
            yield str(name), group[name][()]


def _of_tensorflow(tensors: Tensors, path: str) -> Tensors:
    """Weights by the names, and in the layout, of PyTorch's classes.

    "tf_albert_model/albert/encoder/albert_layer_groups_._0/albert_layers_._0/ffn/kernel:0" ->
    "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight", transposed.
    """
    found: Tensors = {}
    for name, value in tensors.items():
        words = _in_model(name).removesuffix(":0").replace("_._", "/").split("/")
        if words[-1] not in _ENDS:
            raise UserError(f"{path}: {name} is not a weight of a supported model.")
        end, transposed = _ENDS[words[-1]]
        found[".".join([*words[:-1], end])] = value.T if transposed else value
    # The masked-LM head has two biases, but adds only the decoder's (TFAlbertMLMHead.call).
    if "predictions.decoder.bias" in found:
        found["predictions.bias"] = found.pop("predictions.decoder.bias")
    return found
