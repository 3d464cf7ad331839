"""The objectives of pre-training, a class each: the model's task, its data, its costs.

A model of AlbertPretrainer learns masked words and the order of segments, one of
ReplacedTokenPretrainer replaced tokens; records and text are the same.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import tensorflow as tf

from albert_tf.analysis.costs import encoder_flops_per_token, pretraining_flops_per_token
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer, ReplacedTokenPretrainer
from albert_tf.models.objectives import PretrainingObjective, ReplacedTokensObjective
from albert_tf.pretraining.data import PretrainingData
from data_pipeline.records.batches import host_rows

Pretrainer: TypeAlias = "AlbertPretrainer | ReplacedTokenPretrainer"
Batches: TypeAlias = Callable[..., tf.data.Dataset]


class MaskedWords:
    """The objective of an AlbertPretrainer: masked words and the order of segments."""

    name = "mlm"  # As the flag and a run's folder have it.

    def __init__(self, model: AlbertPretrainer) -> None:
        self.words: AlbertPretrainer = model  # It predicts masked words.
        self.kept: keras.Model = model  # The run is made for it.

    def losses(self, sentence_objective: str) -> PretrainingObjective | ReplacedTokensObjective:
        """The losses and ratios of the model on records of a sentence objective."""
        return PretrainingObjective(self.words, sentence_objective)

    def batches(self, batches: Batches, seed: int, batch_size: int) -> Batches:
        """Batches of records with further inputs of the model; arguments as for `with_noise`."""
        return batches

    def data(self, data: PretrainingData) -> PretrainingData:
        """The data of a run, in which the objective may not change."""
        return dataclasses.replace(
            data,
            batches=self.batches(data.batches, data.seed, data.batch_size),
            must_not_change={**data.must_not_change, "objective": self.name},
        )

    def flops_per_token(self, sequence_length: int, num_predictions: int) -> float:
        """Operations of a training step for one token, forward and backward."""
        return pretraining_flops_per_token(self.words.config, sequence_length, num_predictions)

    def first_loss(self, vocab_size: int, has_order: bool) -> tuple[float, str]:
        """The loss of a model that knows nothing, and its terms, as in "ln V + ln 2"."""
        loss, terms = math.log(vocab_size), "ln V"
        return (loss + math.log(2), f"{terms} + ln 2") if has_order else (loss, terms)


class ReplacedTokens(MaskedWords):
    """The objective of a ReplacedTokenPretrainer: its detector is kept, its generator guesses."""

    name = "replaced_tokens"

    def __init__(self, model: ReplacedTokenPretrainer) -> None:
        self._model = model
        self.words, self.kept = model.generator, model.detector

    def losses(self, sentence_objective: str) -> PretrainingObjective | ReplacedTokensObjective:
        return ReplacedTokensObjective(self._model, sentence_objective)

    def batches(self, batches: Batches, seed: int, batch_size: int) -> Batches:
        return with_noise(batches, seed, batch_size)

    def flops_per_token(self, sequence_length: int, num_predictions: int) -> float:
        detection = 3 * encoder_flops_per_token(self._model.config, sequence_length)
        return super().flops_per_token(sequence_length, num_predictions) + detection

    def first_loss(self, vocab_size: int, has_order: bool) -> tuple[float, str]:
        weight = self._model.detection_weight
        loss, terms = super().first_loss(vocab_size, has_order and self._model.detector_order)
        return loss + weight * math.log(2), f"{terms} + {weight:g} ln 2"


def objective_of(model: Pretrainer) -> MaskedWords:
    """The objective that a model is made for."""
    if isinstance(model, ReplacedTokenPretrainer):
        return ReplacedTokens(model)
    return MaskedWords(model)


def with_noise(batches: Batches, seed: int, batch_size: int) -> Batches:
    """Batches with `sampling_noise` float32 [B, P] for the generator's draws; `batches` takes
    `start_step=` and `input_context=`, and `batch_size` is B over all replicas.
    """
    # The noise is an input, not drawn in the model: it is a function of seed and number of the
    # batch, so that neither a resume nor the number of replicas or hosts changes what is drawn.

    def noisy(
        start_step: int = 0, input_context: tf.distribute.InputContext | None = None, **others: Any
    ) -> tf.data.Dataset:
        context = {"input_context": input_context} if input_context else {}
        first, end = host_rows(batch_size, input_context)

        def add(number: tf.Tensor, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            key = tf.random.experimental.stateless_fold_in(tf.constant([seed, 2], tf.int64), number)
            shape = [batch_size, batch["masked_lm_ids"].shape[1]]
            noise = tf.random.stateless_uniform(shape, key)[first:end]
            return {**batch, "sampling_noise": noise}

        return batches(start_step=start_step, **context, **others).enumerate(start_step).map(add)

    return noisy


def detection_baselines(figures: dict[str, float]) -> dict[str, tuple[float, str]]:
    """Scores of guesses without a model next to a detector's: metric -> (figure, its name). Empty
    where the figures are not a detector's, which have `replaced_share`.
    """
    if "replaced_share" not in figures:
        return {}
    share = figures["replaced_share"]
    entropy = -sum(part * math.log(part) for part in (share, 1 - share) if part > 0)
    return {
        "detection_loss": (entropy, "share of replaced tokens"),
        "detection_accuracy": (1 - share, "all are original"),
        "detection_precision": (share, "all are replaced"),
    }
