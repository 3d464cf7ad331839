"""The task of text pairs: vectors that are similar for texts that belong together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.base import Predictions, StoredOutputs
from albert_tf.finetuning.tasks.texts import TextTask
from albert_tf.keras_compat import keras
from albert_tf.metrics import SCORERS, Scores
from albert_tf.models import AlbertSentenceEncoder
from albert_tf.models.pairs import PairObjective
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.encoded import EncodedExamples
from data_pipeline.finetuning.examples import TextExample
from data_pipeline.finetuning.features import LengthSettings, encode_texts, label_values
from data_pipeline.tokenizers.base import Tokenizer

_ROWS = 1000  # Number of texts whose cosines with all others are computed at once.
_OF_SINGLE_TEXTS = 0.3  # text_mask_prob where both texts of a row are the same.


@dataclasses.dataclass(frozen=True, eq=False)
class PairTask(TextTask):
    """A task of pairs of texts that are alike, or of single texts, each a pair with itself.

    Attributes:
      loss: of `pairs.LOSSES`; None: cosine where the examples have labels, else in_batch.
      label_scale: the label of texts that mean the same; None: 1, or a trained model's.
      text_mask_prob: share of the tokens that training hides; None: 0, and 0.3 for single texts.
    """

    labels: tuple[str, ...] | None = dataclasses.field(default=(), init=False)
    loss: str | None = dataclasses.field(default=None, kw_only=True)
    label_scale: float | None = dataclasses.field(default=None, kw_only=True)
    text_mask_prob: float | None = dataclasses.field(default=None, kw_only=True)

    model_class = AlbertSentenceEncoder
    averages = ("values",)
    export_task = "embedding"

    @property
    def data_settings(self) -> Mapping[str, str | bool | float | None]:
        return {**self.columns, "label_scale": self._scale}

    @property
    def _scale(self) -> float:
        return 1.0 if self.label_scale is None else self.label_scale

    @property
    def answer_settings(self) -> dict[str, Any]:
        # Training depends on them, answers do not: a run resumes only with the same values.
        return {"pair_loss": self.loss, "text_mask_prob": self.text_mask_prob}

    def as_in(self, metadata: Mapping[str, Any]) -> PairTask:
        scale = metadata.get("data_settings", {}).get("label_scale")
        return dataclasses.replace(self, label_scale=scale) if self.label_scale is None else self

    def head(self, labels: Sequence[str], dropout_rate: float) -> dict[str, float]:
        return {}

    def encode(
        self, examples: list[TextExample], tokenizer: Tokenizer, lengths: LengthSettings
    ) -> EncodedExamples:
        texts = [
            dataclasses.replace(example, text_a=text, text_b=None)
            for example in examples
            for text in (example.text_a, _second(example))
        ]
        encoded = encode_texts(texts, tokenizer, lengths.max_seq_length)
        # The two texts are one row of the inputs, [B, 2, S], like the options of a choice.
        return dataclasses.replace(encoded, num_choices=2)

    def targets(self, examples: list[TextExample], labels: Sequence[str]) -> dict[str, np.ndarray]:
        """Labels scaled to 0 to 1, unless no example has one."""
        if all(example.label is None for example in examples):
            return {}
        values = label_values(examples) / np.float32(self._scale)
        for example, value in zip(examples, values):
            if not 0 <= value <= 1:
                raise UserError(
                    f"{example.place}: found the label {example.label:g}, not a number from 0 to "
                    f"--label_scale={self._scale:g}. Raise --label_scale: 5 for STS-B."
                )
        return {"label_values": values}

    def for_training(self, training: Features, dev: Features) -> PairTask:
        """The task with the loss, share of hidden tokens and deciding score that suit the data."""
        has_labels, pairs = "label_values" in training.targets, not _are_same(training)
        loss = self.loss or ("cosine" if has_labels and pairs else "in_batch")
        if loss == "cosine" and not (has_labels and pairs):
            raise UserError(
                "--pair_loss=cosine compares two texts of a row with a label, and the training "
                "examples lack labels or second texts. Name their columns (--label_column, "
                "--pair_column), or use --pair_loss=in_batch."
            )
        share = self.text_mask_prob
        if share is None:
            # For two equal texts, hidden tokens make the vectors differ, even without dropout.
            share = 0.0 if pairs else _OF_SINGLE_TEXTS
        task = self.scored_on(dev)
        if task.scorer is SCORERS["retrieval"] and _are_same(dev):
            raise UserError(
                "The dev set has single texts, each of which would be matched with itself. Name "
                "the column of second texts (--pair_column)."
            )
        return dataclasses.replace(task, loss=loss, text_mask_prob=share)

    def scored_on(self, features: Features[list[TextExample]]) -> PairTask:
        """Scored by correlations if there are labels, else as retrieval."""
        has_labels = any(example.label is not None for example in features.source)
        return dataclasses.replace(self, scorer=SCORERS["pairs" if has_labels else "retrieval"])

    def new_objective(self, model: keras.Model) -> PairObjective:
        return PairObjective(model, self.loss or "in_batch", self.text_mask_prob or 0.0)

    def keep(
        self, features: Features[list[TextExample]], outputs: Mapping[str, np.ndarray]
    ) -> StoredOutputs:
        """`cosines` float32 [N] and, if scored as retrieval, `reciprocal_ranks` float32 [N]."""
        vectors = outputs["mean_output"].astype(np.float32)  # [N, 2, H]
        # A vector of zeros stays zeros, and its cosines are 0, not NaN.
        vectors /= np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
        first, second = vectors[:, 0], vectors[:, 1]
        stored = {"cosines": (first * second).sum(axis=-1)}
        if self.scorer is SCORERS["retrieval"]:
            texts = [_second(example) for example in features.source]
            stored["reciprocal_ranks"] = 1 / ranks(first, second, texts).astype(np.float32)
        return stored

    def answer(
        self, features: Features[list[TextExample]], stored: Sequence[StoredOutputs]
    ) -> Predictions:
        """Cosines and, as `details`, reciprocal ranks; for several models, their means."""
        cosines = np.mean([member["cosines"] for member in stored], axis=0)
        found = [member["reciprocal_ranks"] for member in stored if "reciprocal_ranks" in member]
        details = np.mean(found, axis=0).tolist() if found else None
        return Predictions(cosines.astype(np.float64).tolist(), details=details)

    def gold(self, features: Features[list[TextExample]]) -> Any:
        """The labels, scaled; None: there are none."""
        return super().gold(features) if features.targets else None

    def score(self, features: Features[list[TextExample]], predictions: Predictions) -> Scores:
        """Correlations if there are labels, else the scores of retrieval."""
        gold = self.gold(features)
        if gold is None:
            return SCORERS["retrieval"]([1.0] * len(features), predictions.details)
        return SCORERS["pairs"](gold, predictions.values)


def ranks(first: np.ndarray, second: np.ndarray, texts: Sequence[str]) -> np.ndarray:
    """int64 [N]: the rank of row n of `second` among all rows for row n of `first`, by dot product.

    Vectors are float32 [N, H]. `texts` are the N second texts; equal texts count once. Among equal
    dot products, the right one ranks last.
    """
    # Of objects: a string array would reserve the longest text's size in every row.
    _, rows, places = np.unique(np.array(texts, object), return_index=True, return_inverse=True)
    found, second = [], second[rows].T
    for start in range(0, len(first), _ROWS):
        right = places[start : start + _ROWS, None]
        products = first[start : start + _ROWS] @ second
        own = np.take_along_axis(products, right, axis=1)
        found.append((products >= own).sum(axis=1))
    return np.concatenate(found)


def _second(example: TextExample) -> str:
    return example.text_a if example.text_b is None else example.text_b


def _are_same(features: Features) -> bool:
    """Whether both texts of each of the first rows are the same, as for files of single texts."""
    rows = np.arange(min(_ROWS, len(features)))
    ids = features.inputs(rows, features.max_seq_length)["input_word_ids"]
    return bool((ids[:, 0] == ids[:, 1]).all())
