"""The models of a server: which ones to serve, and finding, loading and replacing their versions.

Independent of HTTP and gRPC: both call the store and translate its `ServingError`.
"""

from __future__ import annotations

import dataclasses
import gc
import logging
import os
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence

import tensorflow as tf

from data_pipeline.errors import UserError, needs_extra
from data_pipeline.files import storage
from export.saved_model import existing_versions
from export.server.refusals import Limits, ServingError, listed
from export.server.servable import Servable

_MAX_LOAD_ATTEMPTS = 5  # As in TF Serving: a folder that is still being copied may load later.


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """A served name, its folder, and which versions to serve.

    Attributes:
      latest: how many of the highest versions to serve; 0: all of them.
      specific: if not empty, the versions to serve instead.
      labels: label -> version, such as "stable" -> 3.
    """

    name: str
    base_path: str
    latest: int = 1
    specific: tuple[int, ...] = ()
    labels: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def wanted(self, existing: Sequence[int]) -> list[int]:
        """The existing versions to serve, ascending: latest=2 of [1, 2, 5] -> [2, 5]."""
        if self.specific:
            return [version for version in existing if version in self.specific]
        return list(existing[-self.latest :] if self.latest else existing)


def parse_models(arguments: Sequence[str]) -> list[ModelConfig]:
    """The models of --model: ["NAME=PATH", ...]. Raises UserError for any other form."""
    models = []
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if not equals or not path or not re.fullmatch(r"[\w.-]+", name):
            raise UserError(
                f"--model={argument} should be NAME=PATH, the name made of letters, digits, '_', "
                "'-' and '.'."
            )
        models.append(ModelConfig(name, path))
    return models


def read_config_file(path: str) -> list[ModelConfig]:
    """The models in a file for TF Serving's --model_config_file. Raises UserError if it is missing,
    cannot be parsed, or lists no models.
    """
    with needs_extra("serving", "--model_config_file"):
        from google.protobuf import text_format
        from tensorflow_serving.config import model_server_config_pb2

    config = model_server_config_pb2.ModelServerConfig()
    try:
        text_format.Parse(storage.read_bytes(path).decode(), config)
    except text_format.ParseError as error:
        raise UserError(
            f"--model_config_file={path} is not a ModelServerConfig of TF Serving in text: "
            f"{str(error).rstrip('. ')}."
        ) from None
    except UnicodeDecodeError:
        raise UserError(f"--model_config_file={path} is not text in UTF-8.") from None
    models = []
    for model in config.model_config_list.config:
        if not model.name or not model.base_path:
            missing = "base_path" if model.name else "name"
            raise UserError(f"--model_config_file={path}: a model has no {missing}. Give it one.")
        policy = model.model_version_policy
        # A missing policy is parsed as `latest` with 0 versions, but means 1.
        latest = 0 if policy.HasField("all") else max(1, policy.latest.num_versions)
        specific = tuple(policy.specific.versions)
        labels = dict(model.version_labels)
        models.append(ModelConfig(model.name, model.base_path, latest, specific, labels))
    return models


@dataclasses.dataclass(frozen=True)
class _Failure:
    """A version that failed to load: number of attempts, the error, and its folder's content."""

    attempts: int
    message: str
    content: tuple


class _Model:
    """A served name, with its loaded versions and those that failed to load."""

    def __init__(self, config: ModelConfig, limits: Limits) -> None:
        self.config, self._limits = config, limits
        # Requests read both dictionaries while the polling thread updates them. It replaces them
        # instead of modifying them, so readers need no lock.
        self.loaded: dict[int, Servable] = {}
        self.failures: dict[int, _Failure] = {}

    def refresh(self) -> None:
        """Loads the wanted versions, then unloads all others."""
        existing = existing_versions(self.config.base_path)
        self.failures = {v: failure for v, failure in self.failures.items() if v in existing}
        wanted = self.config.wanted(existing)
        for version in wanted:
            self._load(version)
        for version in reversed([] if self.config.specific else existing):
            # Only on startup, if the newest version is broken: then an older one is served.
            if not self.loaded and version not in wanted:
                self._load(version)
        # A version is served until its replacement is loaded.
        if wanted and wanted[-1] in self.loaded and set(self.loaded) - set(wanted):
            self.loaded = {v: servable for v, servable in self.loaded.items() if v in wanted}
            gc.collect()  # Loaded graphs are reference cycles that keep the weights in memory.

    def _load(self, version: int) -> None:
        """Loads a version, unless it is already loaded or has failed too often."""
        if version in self.loaded:
            return
        path = os.path.join(self.config.base_path, str(version))
        content = _content(path)
        failed = self.failures.get(version)
        # If the files have changed, such as after a repair, the attempts start again.
        attempts = failed.attempts if failed and failed.content == content else 0
        if attempts >= _MAX_LOAD_ATTEMPTS:
            return
        try:
            servable = Servable(self.config.name, version, path, self._limits)
        except Exception as error:  # One bad folder must not stop the server.
            message = " ".join(str(error).split())
            self.failures = {**self.failures, version: _Failure(attempts + 1, message, content)}
            logging.error(
                "model %s: version %d does not load: %s", self.config.name, version, message
            )
            return
        self.loaded = dict(sorted([*self.loaded.items(), (version, servable)]))
        self.failures = {v: failure for v, failure in self.failures.items() if v != version}

    def number(self, version: int | None, label: str | None) -> int | None:
        """The version that a request names by number or label; None if it names none."""
        labels = self.config.labels
        if label is None:
            return version
        if label not in labels:
            raise ServingError(
                "NOT_FOUND",
                f"Model {self.config.name!r} has no version label {label!r:.80}. It has: "
                f"{listed(labels) or 'none'} (version_labels of --model_config_file).",
            )
        return labels[label]


def _content(path: str) -> tuple:
    """(file, size, modification time) of all files below a folder."""
    files = [
        os.path.join(folder, name)
        for folder, _, names in tf.io.gfile.walk(path)
        for name in sorted(names)
    ]
    stats = [(file, tf.io.gfile.stat(file)) for file in files]
    return tuple((file, stat.length, stat.mtime_nsec) for file, stat in stats)


class ModelStore:
    """The loaded versions of models, and a thread that looks for newer ones.

    Raises UserError if there is no model, or if two have the same name.

    Attributes:
      limits: the limits of a request.
      computing: a semaphore that a request holds while its body is parsed and its graph runs.
    """

    def __init__(
        self,
        models: Sequence[ModelConfig],
        poll_seconds: float = 1.0,
        limits: Limits = Limits(),  # noqa: B008  (immutable)
    ) -> None:
        if not models:
            raise UserError(
                "No model to serve. Pass --model=NAME=PATH with a folder that run_export wrote, or "
                "--model_config_file."
            )
        for name, count in Counter(model.name for model in models).items():
            if count > 1:
                raise UserError(f"The model name {name!r} is given twice. Give each its own.")
        self.limits = limits
        # As many requests compute concurrently as there are cores, to limit memory: parsed JSON
        # takes twenty times its bytes, and a running graph needs memory, too.
        self.computing = threading.BoundedSemaphore(os.cpu_count() or 1)
        self._models = {model.name: _Model(model, limits) for model in models}
        self._poll_seconds = poll_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="model-poll", daemon=True)

    def load(self) -> None:
        """Loads the existing versions; must be called before requests are answered.

        Raises:
          UserError: a folder has no versions, or none of the wanted ones loads.
        """
        for model in self._models.values():
            model.refresh()
            if not model.loaded:
                failed = "; ".join(failure.message for failure in model.failures.values())
                problem = f"does not load: {failed}" if failed else "has no version folder."
                raise UserError(
                    f"Model {model.config.name!r}: {model.config.base_path} {problem} Export one "
                    "with python -m export.run_export."
                )

    def start(self) -> None:
        """Starts the thread that looks for newer versions."""
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread, if it was started."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _poll(self) -> None:
        while not self._stop.wait(self._poll_seconds):
            self.refresh()

    def refresh(self) -> None:
        """Looks for newer versions now, and loads them."""
        for model in self._models.values():
            try:
                model.refresh()
            except (OSError, tf.errors.OpError) as error:  # A folder vanished while being read.
                logging.error("model %s: %s", model.config.name, " ".join(str(error).split()))

    def names(self) -> list[str]:
        """The served names, sorted."""
        return sorted(self._models)

    def get(self, name: str, version: int | None = None, label: str | None = None) -> Servable:
        """A loaded version, by number or label; without either, the highest one. Raises
        ServingError, NOT_FOUND, if it is not loaded.
        """
        model = self._model(name)
        loaded, number = model.loaded, model.number(version, label)
        if number is None:
            return loaded[max(loaded)]
        if number not in loaded:
            versions = ", ".join(map(str, loaded))
            raise ServingError(
                "NOT_FOUND",
                f"Version {number} of model {name!r} is not loaded; version {versions} is.",
            )
        return loaded[number]

    def status(
        self, name: str, version: int | None = None, label: str | None = None
    ) -> list[tuple[int, str, str, str]]:
        """(version, state, error code, error message) for each known version, highest first."""
        model = self._model(name)
        number = model.number(version, label)
        rows = [(loaded, "AVAILABLE", "OK", "") for loaded in model.loaded]
        rows += [(each, "END", "UNKNOWN", why.message) for each, why in model.failures.items()]
        rows = [row for row in rows if number in (None, row[0])]
        if not rows:
            raise ServingError("NOT_FOUND", f"Version {number} of model {name!r} does not exist.")
        return sorted(rows, reverse=True)

    def _model(self, name: str) -> _Model:
        if name not in self._models:
            message = f"Model {name!r:.80} is not served here. Served: {listed(self._models)}."
            raise ServingError("NOT_FOUND", message)
        return self._models[name]
