"""A model's outputs on a whole split, under any strategy, and the scores of its answers."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from albert_tf.finetuning.tasks.base import Predictions, StoredOutputs, Task
from albert_tf.keras_compat import keras
from albert_tf.machine.targets import shapes_must_be_static
from albert_tf.metrics import Scores
from albert_tf.training.evaluation import evaluation_batch_size
from albert_tf.training.steps import distributed
from data_pipeline.finetuning.batches import Features, finetuning_dataset

_LOWEST = np.float32(-1e30)  # The logit of positions beyond a batch's length.


class Predictor:
    """Computes a model's outputs on all rows of some features; traced once.

    Rows are sorted by length and spread over all replicas of all workers. Every worker gets all
    outputs, without those of rows that only fill the last batch.
    """

    def __init__(self, model: keras.Model, features: Features, batch_size: int) -> None:
        """`batch_size` is the total over all replicas, a multiple of their number."""
        self._model, self._features = model, features
        self._strategy = model.distribute_strategy
        with self._strategy.scope():  # XLA and TPUs recompile for each shape.
            is_static = shapes_must_be_static()
        make = functools.partial(
            finetuning_dataset, features, batch_size, training=False, static_shapes=is_static
        )
        self._batches = distributed(self._strategy, make)
        # Batches have a few lengths; one trace with an unknown length serves them all.
        self._step = tf.function(self._compute, autograph=False, reduce_retracing=True)

    def __call__(self) -> dict[str, np.ndarray]:
        """Outputs by name, [N, ...]; a single output is named `logits`."""
        outputs: dict[str, np.ndarray] = {}
        for batch in self._batches:
            part = {name: value.numpy() for name, value in self._step(batch).items()}
            rows = part.pop("row_numbers")
            is_real = rows >= 0  # The others only fill the last batch.
            for name, values in part.items():
                shape = list(values.shape)
                has_pieces = name in self._features.sequence_outputs
                if has_pieces:  # A batch is as long as its longest row.
                    shape[1] = self._features.max_seq_length
                if name not in outputs:
                    filler = _LOWEST if has_pieces else 0  # Integers cannot hold _LOWEST.
                    outputs[name] = np.full([len(self._features), *shape[1:]], filler, values.dtype)
                if has_pieces:
                    outputs[name][rows[is_real], : values.shape[1]] = values[is_real]
                else:
                    outputs[name][rows[is_real]] = values[is_real]
        return outputs

    def _compute(self, batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Outputs of a global batch, and its row numbers."""
        # All workers get all outputs, so that they choose the same best checkpoint.
        per_replica = self._strategy.run(self._on_replica, args=(batch,))
        return {name: self._strategy.gather(value, 0) for name, value in per_replica.items()}

    def _on_replica(self, batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        # If given targets, SQuAD 2.0's model would predict from the gold start, as in training.
        inputs = {
            name: value for name, value in batch.items() if name not in self._features.targets
        }
        outputs = self._model(inputs, training=False)
        if not isinstance(outputs, dict):
            outputs = {"logits": outputs}
        return {**outputs, "row_numbers": batch["row_numbers"]}


class ScoreEvaluator:
    """The scores of a model on held-out splits, for the training loop.

    Metrics of the first split have the names of the scores; those of other splits begin with the
    name of the split: accuracy, dev_mismatched_accuracy. An undefined score is nan.

    Attributes:
      features: rows of each split, by its name.
      outputs: what `Task.keep` returned for the last outputs, by split.
      scores: the last scores, by split.
      predictions: the last answers, by split.
    """

    def __init__(
        self, task: Task, model: keras.Model, splits: Mapping[str, Features], batch_size: int
    ) -> None:
        """The first of `splits` decides which checkpoint is best; `batch_size` is an upper
        bound, over all replicas.
        """
        self._task, self.features = task, dict(splits)
        self._predictors = {
            split: Predictor(model, features, rows_of_step(model, features, batch_size))
            for split, features in splits.items()
        }
        self.outputs: dict[str, StoredOutputs] = {}
        self.scores: dict[str, Scores] = {}
        self.predictions: dict[str, Predictions] = {}

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return tuple(
            figure_name(split, name, list(self.features))
            for split in self.features
            for name in self._task.metrics
        )

    def __call__(self) -> dict[str, float]:
        """Metrics by name."""
        figures = {}
        for split, features in self.features.items():
            outputs = self._task.keep(features, self._predictors[split]())
            predictions = self._task.answer(features, [outputs])
            scores = self._task.score(features, predictions)
            self.outputs[split], self.predictions[split] = outputs, predictions
            self.scores[split] = scores
            for name in self._task.metrics:
                score = scores.get(name)
                figure = figure_name(split, name, list(self.features))
                # The training loop compares numbers, and never takes nan for the best.
                figures[figure] = float("nan") if score is None else score
        return figures


def rows_of_step(model: keras.Model, features: Features, batch_size: int) -> int:
    """The batch size of a `Predictor`: at most `batch_size`, the same number for each replica."""
    length, strategy = features.max_seq_length, model.distribute_strategy
    return evaluation_batch_size(model.config, batch_size, length, len(features), strategy)


def figure_name(split: str, score: str, splits: list[str]) -> str:
    """The name of a split's score among the metrics of a run, see ScoreEvaluator."""
    return score if split == splits[0] else f"{split}_{score}"
