"""The objectives of pre-training, one class each: the model's task, its data, its costs.

An AlbertPretrainer learns masked words and the order of segments, an AlbertSpanPretrainer also
recurring spans, a ReplacedTokenPretrainer replaced tokens; all use the same records or text.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import tensorflow as tf

from albert_tf.analysis.costs import encoder_flops_per_token, pretraining_flops_per_token
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer, AlbertSpanPretrainer, ReplacedTokenPretrainer
from albert_tf.models.objectives import (
    PretrainingObjective,
    RecurringSpansObjective,
    ReplacedTokensObjective,
)
from albert_tf.pretraining.data import PretrainingData
from albert_tf.training.batch_sizes import BatchSizes
from data_pipeline.pretraining.dataset import static_masks
from data_pipeline.records.batches import host_rows

Pretrainer: TypeAlias = "AlbertPretrainer | ReplacedTokenPretrainer"
Batches: TypeAlias = Callable[..., tf.data.Dataset]


class MaskedWords:
    """The objective of an AlbertPretrainer: masked words and the order of segments."""

    name = "mlm"  # As in --objective and in a run's folder.

    def __init__(self, model: AlbertPretrainer) -> None:
        self.words: AlbertPretrainer = model  # It predicts masked words.
        self.kept: keras.Model = model  # The run saves it.

    def losses(self, sentence_objective: str) -> PretrainingObjective | ReplacedTokensObjective:
        """The losses and ratios of the model on records of a sentence objective."""
        return PretrainingObjective(self.words, sentence_objective)

    def batches(self, batches: Batches, seed: int, sizes: BatchSizes) -> Batches:
        """Batches with all inputs that the model needs; arguments as for `with_noise`."""
        return batches

    def data(self, data: PretrainingData) -> PretrainingData:
        """The data of a run, in which the objective may not change."""
        return dataclasses.replace(
            data,
            batches=self.batches(data.batches, data.seed, data.sizes),
            must_not_change={**data.must_not_change, "objective": self.name},
        )

    def flops_per_token(self, sequence_length: int, num_predictions: int) -> float:
        """Operations of a training step for one token, forward and backward."""
        return pretraining_flops_per_token(self.words.config, sequence_length, num_predictions)

    def first_loss(self, data: PretrainingData, has_order: bool = True) -> tuple[float, str]:
        """The loss of an untrained model, and its terms, as in "ln V + ln 2"; without `has_order`
        the order of segments is not learned.
        """
        loss, terms = math.log(data.vocab_size), "ln V"
        if has_order and data.sentence_objective != "none":
            return loss + math.log(2), f"{terms} + ln 2"
        return loss, terms


class RecurringSpans(MaskedWords):
    """The objective of an AlbertSpanPretrainer: recurring spans, besides masked words."""

    name = "recurring_spans"

    def __init__(self, model: AlbertSpanPretrainer) -> None:
        super().__init__(model)
        self._model = model

    def losses(self, sentence_objective: str) -> PretrainingObjective:
        return RecurringSpansObjective(self._model, sentence_objective)

    def batches(self, batches: Batches, seed: int, sizes: BatchSizes) -> Batches:
        return functools.partial(batches, span_mask_share=self._model.span_mask_share)

    def data(self, data: PretrainingData) -> PretrainingData:
        if data.manifest["masking"] == "static":
            raise static_masks(data.manifest)
        fixed = {**data.must_not_change, "span_mask_share": self._model.span_mask_share}
        return super().data(dataclasses.replace(data, must_not_change=fixed))

    def first_loss(self, data: PretrainingData, has_order: bool = True) -> tuple[float, str]:
        loss, terms = super().first_loss(data, has_order)
        return loss + math.log(data.max_seq_length), f"{terms} + ln S"


class ReplacedTokens(MaskedWords):
    """The objective of a ReplacedTokenPretrainer: its detector is saved, its generator is not."""

    name = "replaced_tokens"

    def __init__(self, model: ReplacedTokenPretrainer) -> None:
        self._model = model
        self.words, self.kept = model.generator, model.detector

    def losses(self, sentence_objective: str) -> PretrainingObjective | ReplacedTokensObjective:
        return ReplacedTokensObjective(self._model, sentence_objective)

    def batches(self, batches: Batches, seed: int, sizes: BatchSizes) -> Batches:
        return with_noise(batches, seed, sizes)

    def flops_per_token(self, sequence_length: int, num_predictions: int) -> float:
        # The backward pass costs two forward ones.
        detection = 3 * encoder_flops_per_token(self._model.config, sequence_length)
        return super().flops_per_token(sequence_length, num_predictions) + detection

    def first_loss(self, data: PretrainingData, has_order: bool = True) -> tuple[float, str]:
        weight = self._model.detection_weight
        loss, terms = super().first_loss(data, has_order and self._model.detector_order)
        return loss + weight * math.log(2), f"{terms} + {weight:g} ln 2"


def objective_of(model: Pretrainer) -> MaskedWords:
    """The objective that a model is made for."""
    if isinstance(model, ReplacedTokenPretrainer):
        return ReplacedTokens(model)
    if isinstance(model, AlbertSpanPretrainer):
        return RecurringSpans(model)
    return MaskedWords(model)


def with_noise(batches: Batches, seed: int, sizes: BatchSizes) -> Batches:
    """Batches with `sampling_noise` float32 [B, P] for the generator's draws; `batches` takes
    `start_step=` and `input_context=`, and gives batches of the size at that step.
    """
    # The noise is an input, not drawn in the model: it is a function of seed and number of the
    # batch, so that neither a resume nor the number of replicas or hosts changes what is drawn.

    def noisy(
        start_step: int = 0, input_context: tf.distribute.InputContext | None = None, **others: Any
    ) -> tf.data.Dataset:
        context = {"input_context": input_context} if input_context else {}
        batch_size = sizes.at(start_step)
        first, end = host_rows(batch_size, input_context)

        def add(number: tf.Tensor, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            # 2 makes these numbers independent of the order of records, which uses [seed, 0].
            key = tf.random.experimental.stateless_fold_in(tf.constant([seed, 2], tf.int64), number)
            shape = [batch_size, batch["masked_lm_ids"].shape[1]]
            noise = tf.random.stateless_uniform(shape, key)[first:end]
            return {**batch, "sampling_noise": noise}

        return batches(start_step=start_step, **context, **others).enumerate(start_step).map(add)

    return noisy


def span_baselines(figures: dict[str, float], mean_length: float) -> dict[str, tuple[float, str]]:
    """Scores of random guesses of recurring spans among the tokens of a text: metric -> (figure,
    its name). Empty if the figures are not of such spans.
    """
    if "span_loss" not in figures:
        return {}
    guess = {"span_loss": math.log(mean_length)}
    guess |= dict.fromkeys(("start_accuracy", "end_accuracy"), 1 / mean_length)
    return {name: (figure, "any token") for name, figure in guess.items()}


def detection_baselines(figures: dict[str, float]) -> dict[str, tuple[float, str]]:
    """Scores of guesses without a model, for comparison with a detector: metric -> (figure, its
    name). Empty if the figures are not a detector's, which have `replaced_share`.
    """
    if "replaced_share" not in figures:
        return {}
    share = figures["replaced_share"]
    # 0 ln 0 counts as 0, its limit: a generator may be always right.
    entropy = -sum(part * math.log(part) for part in (share, 1 - share) if part > 0)
    return {
        "detection_loss": (entropy, "share of replaced tokens"),
        "detection_accuracy": (1 - share, "all are original"),
        "detection_precision": (share, "all are replaced"),
    }
