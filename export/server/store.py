"""The models of a server: the highest version of each, found, loaded, replaced by newer ones.

Knows nothing of HTTP or gRPC; both services ask it and translate `ServingError`.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Mapping

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from data_pipeline.errors import UserError
from export.saved_model import existing_versions
from export.signatures import DEFAULT_SIGNATURE

NOT_FOUND, INVALID_ARGUMENT = "NOT_FOUND", "INVALID_ARGUMENT"
_MAX_LOAD_ATTEMPTS = 5  # As TF Serving: a folder that is still being copied may load later.


class ServingError(Exception):
    """A request that cannot be answered.

    Attributes:
      code: name of a gRPC status code.
      message: one sentence.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Servable:
    """One loaded version of a model.

    Attributes:
      name, version: name of the model, and number of the version.
      signature_defs: SignatureDef protos by name, as GetModelMetadata reports them.
    """

    def __init__(self, name: str, version: int, path: str) -> None:
        import tensorflow_text  # noqa: F401  (registers the ops of text graphs)

        self.name, self.version = name, version
        self._loaded = tf.saved_model.load(path)
        self.signature_defs = read_signature_defs(path)

    def signature_def(self, signature: str) -> meta_graph_pb2.SignatureDef:
        """The signature of a name; an empty one means the default."""
        name = signature or DEFAULT_SIGNATURE
        if name not in self.signature_defs:
            raise ServingError(
                INVALID_ARGUMENT,
                f"Model {self.name!r} has no signature {name!r}. It has: "
                f"{_listed(self.signature_defs)}.",
            )
        return self.signature_defs[name]

    def predict(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Arrays by input name -> arrays by output name; string arrays hold bytes.

        Raises:
          ServingError: INVALID_ARGUMENT when names, types or shapes do not fit the signature.
        """
        wanted = self.signature_def(signature).inputs
        if set(inputs) != set(wanted):
            raise ServingError(
                INVALID_ARGUMENT,
                f"Signature {signature or DEFAULT_SIGNATURE!r} of model {self.name!r} takes the "
                f"inputs {_listed(wanted)}; received {_listed(inputs) or 'none'}.",
            )
        tensors = {
            name: _checked_tensor(name, value, wanted[name]) for name, value in inputs.items()
        }
        try:
            answer = self._loaded.signatures[signature or DEFAULT_SIGNATURE](**tensors)
        except (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError) as error:
            message = reason(error.message)
            raise ServingError(INVALID_ARGUMENT, f"Model {self.name!r}: {message}") from error
        return {name: value.numpy() for name, value in answer.items()}


def reason(message: str) -> str:
    """The line of a graph's error message with the reason: the last one before the node's name."""
    told = message.split("[[{{node")[0].strip()
    return told.splitlines()[-1] if told else message


def read_signature_defs(path: str) -> dict[str, meta_graph_pb2.SignatureDef]:
    """The signatures in a SavedModel's folder, without running anything."""
    saved_model = saved_model_pb2.SavedModel()
    with tf.io.gfile.GFile(os.path.join(path, "saved_model.pb"), "rb") as file:
        saved_model.ParseFromString(file.read())
    signatures = saved_model.meta_graphs[0].signature_def
    return {name: value for name, value in signatures.items() if not name.startswith("__")}


def _checked_tensor(name: str, value: np.ndarray, info: meta_graph_pb2.TensorInfo) -> tf.Tensor:
    dtype = tf.as_dtype(info.dtype)
    try:
        tensor = tf.constant(value, dtype)
    except (TypeError, ValueError) as error:
        raise ServingError(
            INVALID_ARGUMENT, f"Input {name!r} should be {dtype.name}: {str(error).splitlines()[0]}"
        ) from None
    shape = tf.TensorShape(info.tensor_shape)
    if not shape.is_compatible_with(tensor.shape):
        raise ServingError(
            INVALID_ARGUMENT,
            f"Input {name!r} should have the shape {shape}; received {tensor.shape}.",
        )
    return tensor


class _Model:
    """A served name: its folder, the version that is loaded, and those that do not load."""

    def __init__(self, name: str, base_path: str) -> None:
        self.name, self.base_path = name, base_path
        self.servable: Servable | None = None
        self.failures: dict[int, tuple[int, str]] = {}  # version -> (attempts, last message)

    @property
    def loaded(self) -> Servable:
        """The version that is loaded; `ModelStore` refuses models without one."""
        assert self.servable is not None
        return self.servable

    def refresh(self) -> None:
        """Loads the highest version, unless it is loaded already or has failed too often."""
        versions = existing_versions(self.base_path)
        if not versions:
            return
        version = versions[-1]
        attempts, _ = self.failures.get(version, (0, ""))
        if attempts >= _MAX_LOAD_ATTEMPTS or (self.servable and self.servable.version == version):
            return
        try:
            self.servable = Servable(self.name, version, os.path.join(self.base_path, str(version)))
            self.failures.pop(version, None)
        except Exception as error:
            message = " ".join(str(error).split())
            self.failures[version] = attempts + 1, message
            logging.error("model %s: version %d does not load: %s", self.name, version, message)


class ModelStore:
    """The highest versions of model folders, and a thread that looks for newer ones.

    Args:
      base_paths: folder by name; each holds numbered version folders.
      poll_seconds: seconds between two looks at the folders.

    Raises:
      UserError: a folder holds no version, or its highest one does not load.
    """

    def __init__(self, base_paths: Mapping[str, str], poll_seconds: float = 1.0) -> None:
        self._models = {name: _Model(name, path) for name, path in base_paths.items()}
        self._poll_seconds = poll_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="model-poll", daemon=True)
        for model in self._models.values():
            model.refresh()
            if model.servable is None:
                failed = "; ".join(message for _, message in model.failures.values())
                problem = f"does not load: {failed}" if failed else "has no version folder."
                raise UserError(
                    f"--model={model.name}: {model.base_path} {problem} Export one with python -m "
                    "export.run_export."
                )

    def start(self) -> None:
        """Starts the thread that looks for newer versions."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, if it was started."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _poll(self) -> None:
        while not self._stop.wait(self._poll_seconds):
            self.refresh()

    def refresh(self) -> None:
        """Looks for newer versions now, and loads them."""
        for model in self._models.values():
            model.refresh()

    def names(self) -> list[str]:
        """The served names, sorted."""
        return sorted(self._models)

    def get(self, name: str, version: int | None = None) -> Servable:
        """The loaded model of a name; `version`, if given, must be the one that is loaded."""
        servable = self._model(name).loaded
        if version is not None and version != servable.version:
            raise ServingError(
                NOT_FOUND,
                f"Version {version} of model {name!r} is not loaded; version {servable.version} "
                "is.",
            )
        return servable

    def status(self, name: str, version: int | None = None) -> list[tuple[int, str, str, str]]:
        """(version, state, error code, error message) for each known version, highest first."""
        model = self._model(name)
        rows = [(model.loaded.version, "AVAILABLE", "OK", "")]
        rows += [
            (failed, "END", "UNKNOWN", message) for failed, (_, message) in model.failures.items()
        ]
        rows = [row for row in rows if version in (None, row[0])]
        if not rows:
            raise ServingError(NOT_FOUND, f"Version {version} of model {name!r} is not known here.")
        return sorted(rows, reverse=True)

    def _model(self, name: str) -> _Model:
        if name not in self._models:
            raise ServingError(
                NOT_FOUND, f"Model {name!r} is not served here. Served: {_listed(self._models)}."
            )
        return self._models[name]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
