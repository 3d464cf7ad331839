"""Objectives: a model with its losses and metrics, independent of how it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import tensorflow as tf

from albert_tf.keras_compat import keras
from albert_tf.models import (
    AlbertClassifier,
    AlbertMultipleChoice,
    AlbertPretrainer,
    AlbertSpanLabeler,
    AlbertSpanLabelerV2,
    AlbertSpanPretrainer,
    AlbertTokenClassifier,
    ReplacedTokenPretrainer,
)
from albert_tf.models.losses import EPSILON, Ratio, correct, cross_entropy, weighted_mean
from albert_tf.models.spans import position_mask

Batch = dict[str, tf.Tensor]

# Value of --sentence_objective -> the objective's name in the metrics.
SENTENCE_OUTPUTS = {"sop": "sentence_order", "nsp": "next_sentence", "none": None}


class Objective(Protocol):
    """A model with the losses and metrics that it has on a batch."""

    model: keras.Model

    @property
    def losses(self) -> Mapping[str, str]:
        """The ratios to minimize, each with the name of the batch's weights whose sum is its
        denominator: {"masked_lm_loss": "masked_lm_weights"}. The loss is the sum of these ratios.
        """
        # The weights are named so that denominators are known before the model runs: gradient
        # accumulation divides each part's gradients by the sum over the whole batch.

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of all ratios."""

    def ratios(
        self, batch: Batch, training: bool, seed: tf.Tensor | None = None
    ) -> dict[str, Ratio]:
        """Losses and metrics of one batch (the model's inputs, labels and weights), by name."""


def loss_denominators(objective: Objective, batch: Batch) -> dict[str, tf.Tensor]:
    """Denominators of the losses by name, float32 scalars, without running the model."""
    weights = {name: tf.cast(batch[key], tf.float32) for name, key in objective.losses.items()}
    return {name: tf.reduce_sum(values) for name, values in weights.items()}


def total_loss(
    objective: Objective, ratios: dict[str, Ratio], denominators: dict[str, tf.Tensor] | None = None
) -> tf.Tensor:
    """The loss to minimize, a float32 scalar. `ratios` may be of a part of a batch, with the
    `denominators` of the whole batch; None: those of `ratios`.
    """
    if denominators is None:
        denominators = {name: ratios[name].denominator for name in objective.losses}
    return tf.add_n(
        [ratios[name].numerator / (denominators[name] + EPSILON) for name in objective.losses]
    )


def _loss_and_accuracy(
    name: str, logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor
) -> dict[str, Ratio]:
    """{name_loss, name_accuracy} of classes; logits [..., C], labels and weights [...]."""
    return {
        f"{name}_loss": weighted_mean(cross_entropy(logits, labels), weights),
        f"{name}_accuracy": weighted_mean(correct(logits, labels), weights),
    }


class ModelObjective:
    """An objective whose ratios follow from the outputs of one call of its model."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def ratios(
        self, batch: Batch, training: bool, seed: tf.Tensor | None = None
    ) -> dict[str, Ratio]:
        """Ratios by name; the class says what the batch has."""
        return self.ratios_of(self.model(batch, training=training, seed=seed), batch)

    def ratios_of(self, outputs: Any, batch: Batch) -> dict[str, Ratio]:
        """Ratios by name, of the model's outputs for a batch."""
        raise NotImplementedError


class PretrainingObjective(ModelObjective):
    """Masked language model plus a sentence pair objective, weighted 1 : 1 as in the reference.

    Batch: see data_pipeline.pretraining.dataset.pretraining_dataset.
    """

    def __init__(self, model: AlbertPretrainer, sentence_objective: str = "sop") -> None:
        """sentence_objective: a key of SENTENCE_OUTPUTS."""
        super().__init__(model)
        self._objective = SENTENCE_OUTPUTS[sentence_objective]
        self.losses = {"masked_lm_loss": "masked_lm_weights"}
        if self._objective:
            self.losses[f"{self._objective}_loss"] = "example_weights"
        self.metrics = self.metrics_of(sentence_objective)

    @staticmethod
    def metrics_of(sentence_objective: str) -> tuple[str, ...]:
        """Names of the metrics with a sentence objective, a key of SENTENCE_OUTPUTS."""
        objectives = ("masked_lm", SENTENCE_OUTPUTS[sentence_objective])
        names = [name for name in objectives if name]
        return (*(f"{name}_loss" for name in names), *(f"{name}_accuracy" for name in names))

    def ratios_of(self, outputs: dict[str, tf.Tensor], batch: Batch) -> dict[str, Ratio]:
        words, pairs = outputs["masked_lm_logits"], outputs["sentence_order_logits"]
        # Weights are 0 at unused predictions of a text with fewer than P masked tokens, and for
        # examples that only fill up the last batch of an evaluation.
        ids, weights = batch["masked_lm_ids"], batch["masked_lm_weights"]
        ratios = _loss_and_accuracy("masked_lm", words, ids, weights)
        if self._objective:
            labels, weights = batch["sentence_order_labels"], batch["example_weights"]
            ratios |= _loss_and_accuracy(self._objective, pairs, labels, weights)
        return ratios


class RecurringSpansObjective(PretrainingObjective):
    """Masked language modeling, sentence-order prediction and recurring-span selection: the mean
    cross-entropy of start and end of each answer, the one place where a recurring span is visible.
    """

    # The standard span head gives a token one score for all questions; Splinter's head gives one
    # per question. So an answer competes with all tokens except the other answers, and the model
    # learns which spans fit any of the [MASK]s. For one answer this is SpanObjective's loss.

    def __init__(self, model: AlbertSpanPretrainer, sentence_objective: str = "sop") -> None:
        super().__init__(model, sentence_objective)
        self.losses["span_loss"] = "span_weights"
        self.metrics += ("span_loss", "start_accuracy", "end_accuracy")

    def ratios_of(self, outputs: dict[str, tf.Tensor], batch: Batch) -> dict[str, Ratio]:
        weights = batch["span_weights"]  # [B, Q]
        losses, found = {}, {}
        for name in ("start", "end"):
            logits, answers = outputs[f"{name}_logits"], batch[f"span_{name}s"]
            is_answer = tf.one_hot(answers, tf.shape(logits)[1]) * weights[:, :, tf.newaxis]
            others = logits + position_mask(tf.reduce_max(is_answer, axis=1))  # [B, S]
            own = tf.gather(logits, answers, batch_dims=1)  # [B, Q]
            # -log(e^own / (e^own + sum of e^others)).
            log_sum = tf.reduce_logsumexp(others, axis=1, keepdims=True)
            losses[name] = tf.nn.softplus(log_sum - own)
            found[name] = own > tf.reduce_max(others, axis=1, keepdims=True)
        return {
            **super().ratios_of(outputs, batch),
            "span_loss": weighted_mean(0.5 * (losses["start"] + losses["end"]), weights),
            "start_accuracy": weighted_mean(found["start"], weights),
            "end_accuracy": weighted_mean(found["end"], weights),
        }


class ReplacedTokensObjective(ModelObjective):
    """Masked language modeling of the generator, detection of replaced tokens, sentence order.

    Detection metrics are means over real tokens; precision and recall are those of the class "this
    token was replaced". `weighted_detection_loss`, `detection_weight` times the loss, is minimized.
    Batch: see ReplacedTokenPretrainer, and `example_weights`.
    """

    def __init__(self, model: ReplacedTokenPretrainer, sentence_objective: str = "sop") -> None:
        """sentence_objective: a key of SENTENCE_OUTPUTS."""
        super().__init__(model)
        self._objective = SENTENCE_OUTPUTS[sentence_objective] if model.detector_order else None
        self.losses = {
            "masked_lm_loss": "masked_lm_weights",
            "weighted_detection_loss": "input_mask",
        }
        detection = (f"detection_{name}" for name in ("loss", "accuracy", "precision", "recall"))
        names = [*self.losses, "masked_lm_accuracy", *detection, "replaced_share"]
        if self._objective:
            self.losses[f"{self._objective}_loss"] = "example_weights"
            names += [f"{self._objective}_loss", f"{self._objective}_accuracy"]
        self.metrics = tuple(names)

    def ratios_of(self, outputs: dict[str, tf.Tensor], batch: Batch) -> dict[str, Ratio]:
        words, ids = outputs["masked_lm_logits"], batch["masked_lm_ids"]
        logits, pairs = outputs["replaced_logits"], outputs["sentence_order_logits"]
        real = tf.cast(batch["input_mask"], tf.float32)  # [B, S]
        real *= batch["example_weights"][:, tf.newaxis]
        replaced = tf.cast(outputs["is_replaced"], tf.float32)
        said = tf.cast(logits > 0, tf.float32)  # A probability above 1/2.
        loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=replaced, logits=logits)
        ratios = {
            **_loss_and_accuracy("masked_lm", words, ids, batch["masked_lm_weights"]),
            # The weight is in the numerator: every denominator is a sum of the batch's weights.
            "weighted_detection_loss": weighted_mean(self.model.detection_weight * loss, real),
            "detection_loss": weighted_mean(loss, real),
            "detection_accuracy": weighted_mean(said == replaced, real),
            # The share of tokens predicted as replaced that were, and of replaced ones found.
            "detection_precision": weighted_mean(replaced, said * real),
            "detection_recall": weighted_mean(said, replaced * real),
            "replaced_share": weighted_mean(replaced, real),
        }
        if self._objective:
            labels, weights = batch["sentence_order_labels"], batch["example_weights"]
            ratios |= _loss_and_accuracy(self._objective, pairs, labels, weights)
        return ratios


class ClassificationObjective(ModelObjective):
    """Cross-entropy of one label out of C, for a text or a choice of texts; batch: inputs,
    `label_ids` int32 [B] and `example_weights` float32 [B].
    """

    model: AlbertClassifier | AlbertMultipleChoice | AlbertTokenClassifier
    labels = "label_ids"
    losses: ClassVar = {"cross_entropy": "example_weights"}
    metrics = ("cross_entropy", "accuracy")

    def ratios_of(self, outputs: tf.Tensor, batch: Batch) -> dict[str, Ratio]:
        labels, weights = batch[self.labels], batch[self.losses["cross_entropy"]]
        return {
            "cross_entropy": weighted_mean(cross_entropy(outputs, labels), weights),
            "accuracy": weighted_mean(correct(outputs, labels), weights),
        }


class TokenClassificationObjective(ClassificationObjective):
    """Cross-entropy of one label out of C for each token that has one; batch: inputs,
    `token_label_ids` int32 [B, S] and `token_weights` float32 [B, S].
    """

    labels = "token_label_ids"
    losses: ClassVar = {"cross_entropy": "token_weights"}


class MultiLabelObjective(ModelObjective):
    """Mean binary cross-entropy over C labels, of which a text has any number; batch: inputs,
    `label_matrix` int32 [B, C] of 0 and 1, and `example_weights` float32 [B].
    """

    model: AlbertClassifier
    losses: ClassVar = {"binary_cross_entropy": "example_weights"}
    metrics = ("binary_cross_entropy", "label_accuracy")

    def ratios_of(self, outputs: tf.Tensor, batch: Batch) -> dict[str, Ratio]:
        labels, weights = batch["label_matrix"], batch["example_weights"]
        loss = tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(labels, tf.float32), outputs)
        right = tf.cast(tf.equal(outputs > 0, labels > 0), tf.float32)
        return {
            "binary_cross_entropy": weighted_mean(tf.reduce_mean(loss, axis=1), weights),
            "label_accuracy": weighted_mean(tf.reduce_mean(right, axis=1), weights),
        }


class RegressionObjective(ModelObjective):
    """Squared error of a number, on its own scale as in the reference (STS-B); batch: inputs,
    `label_values` and `example_weights` float32 [B].
    """

    model: AlbertClassifier
    losses: ClassVar = {"squared_error": "example_weights"}
    metrics = ("squared_error",)

    def ratios_of(self, outputs: tf.Tensor, batch: Batch) -> dict[str, Ratio]:
        error = tf.square(outputs[:, 0] - batch["label_values"])
        return {"squared_error": weighted_mean(error, batch["example_weights"])}


class SpanObjective(ModelObjective):
    """Mean of the cross-entropies of start and end; batch: inputs, `start_positions` and
    `end_positions` int32 [B], and `example_weights` float32 [B].
    """

    model: AlbertSpanLabeler
    losses: ClassVar = {"span_loss": "example_weights"}
    metrics = ("span_loss", "start_accuracy", "end_accuracy")

    def ratios_of(self, outputs: dict[str, tf.Tensor], batch: Batch) -> dict[str, Ratio]:
        return _span_ratios(outputs["start_logits"], outputs["end_logits"], batch)


class SpanObjectiveV2(ModelObjective):
    """Mean of the cross-entropies of start, and of end given the gold start; plus half the
    cross-entropy of "no answer". Batch: as for SpanObjective, and `impossible_positions` int32
    [B, S] and `is_impossible` int32 [B].
    """

    # A question without an answer has its start and end at [CLS], so the span loss treats it like
    # any other.

    model: AlbertSpanLabelerV2
    losses: ClassVar = {"span_loss": "example_weights", "answer_loss": "example_weights"}
    metrics = (*losses, "start_accuracy", "end_accuracy", "answer_accuracy")

    def ratios_of(self, outputs: dict[str, tf.Tensor], batch: Batch) -> dict[str, Ratio]:
        logits, is_impossible = outputs["answer_logits"], batch["is_impossible"]
        answer = tf.nn.sigmoid_cross_entropy_with_logits(
            labels=tf.cast(is_impossible, tf.float32), logits=logits
        )
        # A logit above 0 is a probability above 1/2; the threshold for answers is chosen later.
        right = tf.equal(logits > 0, tf.cast(is_impossible, tf.bool))
        return {
            **_span_ratios(outputs["start_log_probs"], outputs["end_log_probs"], batch),
            "answer_loss": weighted_mean(0.5 * answer, batch["example_weights"]),
            "answer_accuracy": weighted_mean(right, batch["example_weights"]),
        }


def _span_ratios(start: tf.Tensor, end: tf.Tensor, batch: Batch) -> dict[str, Ratio]:
    """Loss and accuracies of spans; start, end: logits or log-probabilities, float32 [B, S]."""
    starts, ends = batch["start_positions"], batch["end_positions"]
    weights = batch["example_weights"]
    # The softmax of log-probabilities is the distribution itself, so they may serve as logits.
    loss = 0.5 * (cross_entropy(start, starts) + cross_entropy(end, ends))
    return {
        "span_loss": weighted_mean(loss, weights),
        "start_accuracy": weighted_mean(correct(start, starts), weights),
        "end_accuracy": weighted_mean(correct(end, ends), weights),
    }
