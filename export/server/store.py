"""The models of a server: the versions of each, found, loaded, replaced by newer ones.

Knows nothing of HTTP or gRPC; both services ask it and translate `ServingError`.
"""

from __future__ import annotations

import dataclasses
import gc
import logging
import os
import threading
from collections.abc import Sequence

import tensorflow as tf

from data_pipeline.errors import UserError
from export.saved_model import existing_versions
from export.server.errors import NOT_FOUND, ServingError, listed
from export.server.limits import Limits
from export.server.models import ModelConfig
from export.server.servable import Servable
from export.server.turns import Turns

_MAX_LOAD_ATTEMPTS = 5  # As TF Serving: a folder that is still being copied may load later.


@dataclasses.dataclass(frozen=True)
class _Failure:
    """A version that does not load: how often it was tried, why, and what lay in its folder."""

    attempts: int
    message: str
    content: tuple


class _Model:
    """A served name: its versions that are loaded, and those that do not load."""

    def __init__(self, config: ModelConfig, limits: Limits) -> None:
        self.config, self._limits = config, limits
        self.loaded: dict[int, Servable] = {}
        self.failures: dict[int, _Failure] = {}  # Both replaced as a whole: readers take no lock.

    def refresh(self) -> None:
        """Loads the versions that are wanted, then lets go of others."""
        existing = existing_versions(self.config.base_path)
        self.failures = {v: failure for v, failure in self.failures.items() if v in existing}
        wanted = self.config.wanted(existing)
        for version in wanted:
            if version not in self.loaded:
                self._load(version)
        # A version is served until what replaces it is loaded.
        if wanted and wanted[-1] in self.loaded and set(self.loaded) - set(wanted):
            self.loaded = {v: servable for v, servable in self.loaded.items() if v in wanted}
            gc.collect()  # Loaded graphs are cycles, which hold the weights.

    def _load(self, version: int) -> None:
        path = os.path.join(self.config.base_path, str(version))
        content = _content(path)
        failed = self.failures.get(version)
        attempts = failed.attempts if failed and failed.content == content else 0
        if attempts >= _MAX_LOAD_ATTEMPTS:
            return
        try:
            servable = Servable(self.config.name, version, path, self._limits)
        except Exception as error:
            message = " ".join(str(error).split())
            self.failures = {
                **self.failures,
                version: _Failure(attempts + 1, message, content),
            }
            logging.error(
                "model %s: version %d does not load: %s", self.config.name, version, message
            )
            return
        self.loaded = dict(sorted([*self.loaded.items(), (version, servable)]))
        self.failures = {v: failure for v, failure in self.failures.items() if v != version}


def _content(path: str) -> tuple:
    """(file, length, time of change) of all files below a folder; a repaired one differs."""
    files = [
        os.path.join(folder, name)
        for folder, _, names in tf.io.gfile.walk(path)
        for name in sorted(names)
    ]
    stats = [(file, tf.io.gfile.stat(file)) for file in files]
    return tuple((file, stat.length, stat.mtime_nsec) for file, stat in stats)


class ModelStore:
    """The versions of model folders, and a thread that looks for newer ones.

    Args:
      models: what to serve.
      poll_seconds: seconds between two looks at the folders.
      limits: the largest request that is answered.

    Attributes:
      limits: as given.
      turns: of the requests of all models.

    Raises:
      UserError: a folder holds no version, or none of those wanted loads.
    """

    def __init__(
        self,
        models: Sequence[ModelConfig],
        poll_seconds: float = 1.0,
        limits: Limits = Limits(),  # noqa: B008  (immutable)
    ) -> None:
        self.limits, self.turns = limits, Turns()
        self._models = {model.name: _Model(model, limits) for model in models}
        self._poll_seconds = poll_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="model-poll", daemon=True)
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
            try:
                model.refresh()
            except (OSError, tf.errors.OpError) as error:  # A folder that vanishes as it is read.
                logging.error("model %s: %s", model.config.name, " ".join(str(error).split()))

    def names(self) -> list[str]:
        """The served names, sorted."""
        return sorted(self._models)

    def get(self, name: str, version: int | None = None, label: str | None = None) -> Servable:
        """A loaded version of a model.

        Args:
          name: the served name.
          version: number of the version; None: the highest one that is loaded.
          label: a label of the model's configuration, in place of a version.

        Raises:
          ServingError: NOT_FOUND when there is none.
        """
        model = self._model(name)
        if label is not None:
            version = self._labeled(model, label)
        loaded = model.loaded
        if version is None:
            return loaded[max(loaded)]
        if version not in loaded:
            raise ServingError(
                NOT_FOUND,
                f"Version {version} of model {name!r} is not loaded; version "
                f"{', '.join(map(str, loaded))} is.",
            )
        return loaded[version]

    def status(
        self, name: str, version: int | None = None, label: str | None = None
    ) -> list[tuple[int, str, str, str]]:
        """(version, state, error code, error message) for each known version, highest first."""
        model = self._model(name)
        if label is not None:
            version = self._labeled(model, label)
        rows = [(loaded, "AVAILABLE", "OK", "") for loaded in model.loaded]
        rows += [
            (failed, "END", "UNKNOWN", failure.message)
            for failed, failure in model.failures.items()
        ]
        rows = [row for row in rows if version in (None, row[0])]
        if not rows:
            raise ServingError(NOT_FOUND, f"Version {version} of model {name!r} is not known here.")
        return sorted(rows, reverse=True)

    def _model(self, name: str) -> _Model:
        if name not in self._models:
            raise ServingError(
                NOT_FOUND,
                f"Model {name!r:.80} is not served here. Served: {listed(self._models)}.",
            )
        return self._models[name]

    @staticmethod
    def _labeled(model: _Model, label: str) -> int:
        labels = model.config.labels
        if label not in labels:
            raise ServingError(
                NOT_FOUND,
                f"Model {model.config.name!r} has no version label {label!r:.80}. It has: "
                f"{listed(labels) or 'none'} (version_labels of --model_config_file).",
            )
        return labels[label]
