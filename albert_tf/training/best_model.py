"""Keeps the best model of a run, by a metric on held-out data."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints import native, replacement
from albert_tf.keras_compat import keras


class BestModel:
    """A model folder that is rewritten whenever an evaluation beats the one it holds.

    The score to beat is read from the folder, so that a resumed run goes on where it was.
    """

    def __init__(
        self,
        model: keras.Model,
        directory: str,
        metric: str,
        higher_is_better: bool,
        metadata: dict[str, Any],
        vocab_file: str,
        tokenizer: dict[str, Any],
    ) -> None:
        """Args: metric: name of the metric that decides; others as for native.save."""
        self.directory = directory
        self._model = model
        self._metric = metric
        self._sign = 1 if higher_is_better else -1
        self._metadata = metadata
        self._vocabulary = (vocab_file, tokenizer)

    def offer(self, step: int, metrics: dict[str, float]) -> None:
        """Saves the model of `step` if its metrics are better than those of the folder. A figure
        that is no number is never better.
        """
        replacement.settle(self.directory)
        if not math.isfinite(metrics[self._metric]):
            return
        if tf.io.gfile.exists(self.directory):
            best = native.read_metadata(self.directory)["metrics"]
            if self._sign * metrics[self._metric] <= self._sign * best[self._metric]:
                return
        metadata = {**self._metadata, "step": step, "metrics": metrics}
        native.save(self._model, self.directory, metadata, *self._vocabulary)
