"""The best model of a run, by a metric on held-out data."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from data_pipeline.files import atomic_folders

_SCORED_ON = "eval_data_sha256"  # Key in model.json, for runs that may change their held-out data.


class BestModel:
    """A model folder that is rewritten whenever an evaluation beats the model in it."""

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
        """
        Args:
          model: the model whose weights are saved.
          directory: the model folder.
          metric: name of the metric that decides.
          higher_is_better: whether its largest value is the best.
          metadata, vocab_file, tokenizer: see `native.save`.

        Raises:
          UserError: the folder exists, and a file in it differs from what was written.
        """
        if tf.io.gfile.exists(atomic_folders.existing(directory)):
            try:
                native.check(directory)
            except UserError as error:
                raise UserError(
                    f"{error} Or delete {directory}: the run then continues, and keeps the best "
                    "of its later models."
                ) from None
        self.directory = directory
        self._model = model
        self._metric = metric
        self._sign = 1 if higher_is_better else -1
        self._metadata = metadata
        self._vocabulary = (vocab_file, tokenizer)

    def save_if_best(self, step: int, metrics: dict[str, float]) -> None:
        """Saves the model if its metrics, after `step` updates, are better than the folder's."""
        atomic_folders.settle(self.directory)
        if not math.isfinite(metrics[self._metric]):
            return  # A nan is never better.
        # The score to beat is read from the folder, so that a resumed run continues with it. It is
        # ignored if its model is of a later step, because the run went back to an earlier one, or
        # if it was measured on other held-out data.
        if tf.io.gfile.exists(self.directory):
            best = native.read_metadata(self.directory)
            is_better = self._sign * metrics[self._metric] > (
                self._sign * best["metrics"][self._metric]
            )
            scored_on, now = (each.get(_SCORED_ON) for each in (best, self._metadata))
            is_comparable = scored_on in (now, None) and best.get("step", 0) <= step
            if is_comparable and not is_better:
                return
        metadata = {**self._metadata, "step": step, "metrics": metrics}
        native.save(self._model, self.directory, metadata, *self._vocabulary)
