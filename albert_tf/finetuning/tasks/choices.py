"""Tasks of a question with C options, one of which is right: RACE, COPA."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from albert_tf.finetuning.tasks.base import Predictions
from albert_tf.finetuning.tasks.texts import ExampleTask
from albert_tf.metrics import Scores
from albert_tf.models import AlbertMultipleChoice
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.encoded import EncodedExamples
from data_pipeline.finetuning.examples import ChoiceExample
from data_pipeline.finetuning.features import LengthSettings, choice_ids, encode_choices
from data_pipeline.tokenizers.base import Tokenizer


@dataclasses.dataclass(frozen=True, eq=False)
class MultipleChoiceTask(ExampleTask[ChoiceExample]):
    """A task in which one of C options is right; `labels` name the options: A, B, C, D."""

    model_class = AlbertMultipleChoice
    example_type = ChoiceExample
    lengths = ("max_seq_length", "max_qa_length")

    def head(self, labels: Sequence[str], dropout_rate: float) -> dict[str, float]:
        return {"dropout_rate": dropout_rate}

    def encode(
        self, examples: list[ChoiceExample], tokenizer: Tokenizer, lengths: LengthSettings
    ) -> EncodedExamples:
        return encode_choices(examples, tokenizer, lengths.max_seq_length, lengths.max_qa_length)

    def targets(
        self, examples: list[ChoiceExample], labels: Sequence[str]
    ) -> dict[str, np.ndarray]:
        return {"label_ids": choice_ids(examples)}

    def score(self, features: Features[list[ChoiceExample]], predictions: Predictions) -> Scores:
        """Also the scores of groups, where the scorer has them, such as RACE's levels."""
        groups = [each.group for each in features.source] if self.scorer.groups else None
        return self.scorer(self.gold(features), predictions.values, groups)

    def texts(
        self, examples: list[ChoiceExample], predictions: Predictions
    ) -> dict[str, list[str]]:
        chosen = zip(examples, predictions.values)
        return {
            "question": [example.question for example in examples],
            "chosen": [example.options[place] for example, place in chosen],
        }

    def right_answer(self, example: ChoiceExample, labels: Sequence[str]) -> str | None:
        return None if example.label is None else labels[example.label]
