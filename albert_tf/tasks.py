"""What is trained and measured: a model, its losses and its metrics, independent of how it is
trained.
"""

from __future__ import annotations

from typing import Protocol

import tensorflow as tf

from albert_tf.keras_compat import keras
from albert_tf.losses import EPSILON, Ratio, correct, cross_entropy, weighted_mean
from albert_tf.models import AlbertClassifier, AlbertPretrainer

Batch = dict[str, tf.Tensor]

# What a pair of segments is trained on, and how its metrics are called.
SENTENCE_OBJECTIVES = {"sop": "sentence_order", "nsp": "next_sentence", "none": None}


class Task(Protocol):
    """A model and what a batch says about it.

    Attributes:
      model: the Keras model.
      losses: names of the ratios that are minimised; their sum is the loss.
      metrics: names of all ratios.
    """

    model: keras.Model
    losses: tuple[str, ...]
    metrics: tuple[str, ...]

    def ratios(
        self, batch: Batch, training: bool, seed: tf.Tensor | None = None
    ) -> dict[str, Ratio]:
        """Losses and metrics of one batch; denominators do not depend on the model."""


def total_loss(
    task: Task, ratios: dict[str, Ratio], denominators: dict[str, tf.Tensor] | None = None
) -> tf.Tensor:
    """The loss that is minimised, a scalar.

    Args:
      denominators: sums over all replicas, when `ratios` are those of one replica.
    """
    if denominators is None:
        denominators = {name: ratios[name].denominator for name in task.losses}
    return tf.add_n(
        [ratios[name].numerator / (denominators[name] + EPSILON) for name in task.losses]
    )


class PretrainingTask:
    """Masked language model plus a sentence pair objective, weighted 1 : 1 as in the reference."""

    def __init__(self, model: AlbertPretrainer, sentence_objective: str = "sop") -> None:
        """Args: sentence_objective: a key of SENTENCE_OBJECTIVES; "none" leaves it out."""
        self.model = model
        self._objective = SENTENCE_OBJECTIVES[sentence_objective]
        names = ("masked_lm", self._objective) if self._objective else ("masked_lm",)
        self.losses = tuple(f"{name}_loss" for name in names)
        self.metrics = (*self.losses, *(f"{name}_accuracy" for name in names))

    def ratios(
        self, batch: Batch, training: bool, seed: tf.Tensor | None = None
    ) -> dict[str, Ratio]:
        """Batch: see data_pipeline.datasets.pretraining_dataset."""
        outputs = self.model(batch, training=training, seed=seed)
        words, ids = outputs["masked_lm_logits"], batch["masked_lm_ids"]
        weights = batch["masked_lm_weights"]
        ratios = {
            "masked_lm_loss": weighted_mean(cross_entropy(words, ids), weights),
            "masked_lm_accuracy": weighted_mean(correct(words, ids), weights),
        }
        if self._objective:
            pair, labels = outputs["sentence_order_logits"], batch["sentence_order_labels"]
            weights = batch["example_weights"]
            ratios[f"{self._objective}_loss"] = weighted_mean(cross_entropy(pair, labels), weights)
            ratios[f"{self._objective}_accuracy"] = weighted_mean(correct(pair, labels), weights)
        return ratios


class ClassificationTask:
    """Cross-entropy of a classifier."""

    losses = ("cross_entropy",)
    metrics = ("cross_entropy", "accuracy")

    def __init__(self, model: AlbertClassifier) -> None:
        self.model = model

    def ratios(
        self, batch: Batch, training: bool, seed: tf.Tensor | None = None
    ) -> dict[str, Ratio]:
        """Batch: see data_pipeline.classification.classification_dataset."""
        logits = self.model(batch, training=training, seed=seed)
        labels, weights = batch["label_ids"], batch["example_weights"]
        return {
            "cross_entropy": weighted_mean(cross_entropy(logits, labels), weights),
            "accuracy": weighted_mean(correct(logits, labels), weights),
        }
