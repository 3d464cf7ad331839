"""The particulars of an objective of pre-training: the model's task, its data, its costs.

A model of AlbertPretrainer learns masked words and the order of segments, one of
ReplacedTokenPretrainer replaced tokens; records and text are the same.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import tensorflow as tf

from albert_tf.costs import encoder_flops_per_token, pretraining_flops_per_token
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from albert_tf.pretraining.data import PretrainingData
from albert_tf.replaced_tokens import ReplacedTokenPretrainer
from albert_tf.tasks import PretrainingTask, ReplacedTokensTask
from data_pipeline.records.batches import host_rows

Pretrainer: TypeAlias = "AlbertPretrainer | ReplacedTokenPretrainer"


def task_of(model: Pretrainer, sentence_objective: str) -> PretrainingTask | ReplacedTokensTask:
    """The task that a model is made for."""
    kind = ReplacedTokensTask if isinstance(model, ReplacedTokenPretrainer) else PretrainingTask
    return kind(model, sentence_objective)


def model_to_keep(model: Pretrainer) -> keras.Model:
    """The model that a run is made for: of replaced tokens the detector."""
    return model.detector if isinstance(model, ReplacedTokenPretrainer) else model


def model_of_words(model: Pretrainer) -> AlbertPretrainer:
    """The model that predicts masked words."""
    return model.generator if isinstance(model, ReplacedTokenPretrainer) else model


def data_for(model: Pretrainer, data: PretrainingData) -> PretrainingData:
    """The data with the name of the objective, which may not change in a run, and with what it
    needs beside the records.
    """
    name, batches = "mlm", data.batches
    if isinstance(model, ReplacedTokenPretrainer):
        name, batches = "replaced_tokens", with_noise(data.batches, data.seed, data.batch_size)
    must_not_change = {**data.must_not_change, "objective": name}
    return dataclasses.replace(data, batches=batches, must_not_change=must_not_change)


def with_noise(
    batches: Callable[..., tf.data.Dataset], seed: int, batch_size: int
) -> Callable[..., tf.data.Dataset]:
    """Batches with `sampling_noise` float32 [B, P], a function of seed and number of the batch; so
    neither a resume nor the number of replicas or hosts changes what is drawn.

    Args:
      batches: called with `start_step=` and `input_context=`, both of which may be missing.
      seed: of the noise.
      batch_size: B, over all replicas.
    """

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


def flops_per_token(model: Pretrainer, sequence_length: int, num_predictions: int) -> float:
    """Operations of a training step for one token, forward and backward."""
    words = model_of_words(model).config
    flops = pretraining_flops_per_token(words, sequence_length, num_predictions)
    if isinstance(model, ReplacedTokenPretrainer):
        flops += 3 * encoder_flops_per_token(model.config, sequence_length)
    return flops


def detection_baselines(figures: dict[str, float]) -> dict[str, tuple[float, str]]:
    """Scores of guesses without a model beside those of a detector: metric -> (figure, its name).

    Args:
      figures: the detector's, with `replaced_share`; empty without a detector.
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
