"""Tasks of one text or a pair of texts: a class, or a number, for each."""

from __future__ import annotations

import abc
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from albert_tf.finetuning.tasks.answer_tables import write_predictions
from albert_tf.finetuning.tasks.averaging import AVERAGES, average_classes, average_labels
from albert_tf.finetuning.tasks.base import Predictions, ScoredTask, StoredOutputs
from albert_tf.keras_compat import keras
from albert_tf.metrics import Scores, remarks
from albert_tf.models import AlbertClassifier, objectives
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.encoded import EncodedExamples
from data_pipeline.finetuning.examples import ChoiceExample, Split, TextExample
from data_pipeline.finetuning.features import (
    LengthSettings,
    encode_texts,
    label_ids,
    label_matrix,
    label_values,
)
from data_pipeline.finetuning.tsv import class_names
from data_pipeline.tokenizers.base import Tokenizer

Example = TypeVar("Example", TextExample, ChoiceExample)


@dataclasses.dataclass(frozen=True, eq=False)
class ExampleTask(ScoredTask[list[Example]], Generic[Example]):
    """A task whose rows are its examples, each with one answer: one of C classes, unless a subclass
    differs.

    Attributes:
      columns: names of the columns in the user's own files, by flag.
    """

    columns: Mapping[str, str | None] = dataclasses.field(default_factory=dict, kw_only=True)

    objective: ClassVar[type] = objectives.ClassificationObjective
    averages: ClassVar[tuple[str, ...]] = AVERAGES

    @property
    def data_settings(self) -> Mapping[str, str | bool | float | None]:
        return self.columns

    @abc.abstractmethod
    def encode(
        self, examples: list[Example], tokenizer: Tokenizer, lengths: LengthSettings
    ) -> EncodedExamples:
        """The pieces of examples, cut to `lengths`."""

    @abc.abstractmethod
    def targets(self, examples: list[Example], labels: Sequence[str]) -> dict[str, np.ndarray]:
        """The target of each example, one array [N] by its name in a batch."""

    @abc.abstractmethod
    def texts(self, examples: list[Example], predictions: Predictions) -> dict[str, list[str]]:
        """The columns of texts in the table of answers."""

    def features(
        self,
        split: Split,
        tokenizer: Tokenizer,
        lengths: LengthSettings,
        labels: Sequence[str],
        with_targets: bool = True,
    ) -> Features[list[Example]]:
        encoded = self.encode(split.examples, tokenizer, lengths)
        targets = self.targets(split.examples, labels) if with_targets else {}
        pieces = {"ids": encoded.ids, "lengths": encoded.lengths, "first": encoded.first_lengths}
        return Features(
            split.examples,
            encoded.inputs,
            encoded.longest,
            encoded.max_seq_length,
            targets,
            {**pieces, **targets},
        )

    def keep(
        self, features: Features[list[Example]], outputs: Mapping[str, np.ndarray]
    ) -> StoredOutputs:
        """The logits, float32 [N, C]."""
        return {"logits": outputs["logits"]}

    def answer(
        self, features: Features[list[Example]], stored: Sequence[StoredOutputs]
    ) -> Predictions:
        return average_classes(stored, self.average)

    def gold(self, features: Features[list[Example]]) -> Sequence[Any]:
        (values,) = features.targets.values()
        return values.tolist()

    def score(self, features: Features[list[Example]], predictions: Predictions) -> Scores:
        return self.scorer(self.gold(features), predictions.values)

    def write(
        self,
        path: str,
        features: Features[list[Example]],
        labels: Sequence[str],
        predictions: Predictions,
    ) -> list[str]:
        """A table of texts and answers, see answer_tables.py."""
        examples = features.source
        right = [self.right_answer(example, labels) for example in examples]
        answers, probabilities = predictions.values, None
        if labels:
            answers = [self.named(value, labels) for value in predictions.values]
            probabilities = dict(zip(labels, np.transpose(predictions.probabilities)))
        table = f"{path}.tsv"
        write_predictions(
            table,
            [example.guid for example in examples],
            self.texts(examples, predictions),
            answers,
            # All or none: a column with gaps would look as if a label were empty.
            labels=None if None in right else [each for each in right if each is not None],
            probabilities=probabilities,
        )
        return [table]

    def named(self, value: Any, labels: Sequence[str]) -> str:
        """A predicted value as a table shows it, where there are labels."""
        return labels[value]

    def right_answer(self, example: Example, labels: Sequence[str]) -> Any:
        """The right answer as a table shows it, a text or a number; None: not known."""
        return example.label


class TextTask(ExampleTask[TextExample]):
    """A task whose examples are texts, or pairs of texts."""

    model_class: ClassVar[type[keras.Model]] = AlbertClassifier
    example_type = TextExample

    def head(self, labels: Sequence[str], dropout_rate: float) -> dict[str, float]:
        # Without labels, one output: the number of a regression.
        return {"num_classes": max(1, len(labels)), "dropout_rate": dropout_rate}

    def encode(
        self, examples: list[TextExample], tokenizer: Tokenizer, lengths: LengthSettings
    ) -> EncodedExamples:
        return encode_texts(examples, tokenizer, lengths.max_seq_length)

    def texts(self, examples: list[TextExample], predictions: Predictions) -> dict[str, list[str]]:
        columns = {"text": [example.text_a for example in examples]}
        if any(example.text_b is not None for example in examples):
            columns["text_b"] = [example.text_b or "" for example in examples]
        return columns


@dataclasses.dataclass(frozen=True, eq=False)
class ClassificationTask(TextTask):
    """A task in which each text, or pair of texts, has one of C labels."""

    export_task = "classifier"

    def find_labels(self, examples: Split) -> Sequence[str]:
        labels = (example.label for example in examples.examples if example.label is not None)
        return class_names(labels, examples.source)  # `targets` reports missing labels.

    def targets(self, examples: list[TextExample], labels: Sequence[str]) -> dict[str, np.ndarray]:
        return {"label_ids": label_ids(examples, labels)}


@dataclasses.dataclass(frozen=True, eq=False)
class MultiLabelTask(ClassificationTask):
    """A task in which each text, or pair of texts, has any number of C labels.

    Attributes:
      threshold: probability from which a label is predicted; None: the trained model's, or 0.5.
      separator: between the labels of a text in tables.
    """

    threshold: float | None = dataclasses.field(default=None, kw_only=True)
    separator: str = dataclasses.field(default=",", kw_only=True)

    objective = objectives.MultiLabelObjective

    @property
    def answer_settings(self) -> dict[str, Any]:
        return {"threshold": 0.5 if self.threshold is None else self.threshold}

    def as_in(self, metadata: Mapping[str, Any]) -> MultiLabelTask:
        if self.threshold is not None:
            return self
        return dataclasses.replace(self, threshold=metadata.get("threshold"))

    def find_labels(self, examples: Split) -> Sequence[str]:
        sets = [example.label for example in examples.examples if example.label is not None]
        sets = [names if isinstance(names, tuple) else (names,) for names in sets]
        if all(len(names) <= 1 for names in sets):
            print(f"{examples.source}: no example has more than one label.")
        return class_names(itertools.chain.from_iterable(sets), examples.source)

    def head(self, labels: Sequence[str], dropout_rate: float) -> dict[str, float]:
        return {**super().head(labels, dropout_rate), "multi_label": True}

    def num_outcomes(self, labels: Sequence[str]) -> int:
        return 2  # A label holds or does not.

    def targets(self, examples: list[TextExample], labels: Sequence[str]) -> dict[str, np.ndarray]:
        return {"label_matrix": label_matrix(examples, labels)}

    def answer(
        self, features: Features[list[TextExample]], stored: Sequence[StoredOutputs]
    ) -> Predictions:
        return average_labels(stored, self.average, self.answer_settings["threshold"])

    def remarks(
        self,
        features: Features[list[TextExample]],
        predictions: Predictions,
        labels: Sequence[str] = (),
    ) -> list[str]:
        gold, predicted = (
            [self.named(row, labels) or "(no label)" for row in rows]
            for rows in (self.gold(features), predictions.values)
        )
        return remarks(gold, predicted)

    def named(self, value: Any, labels: Sequence[str]) -> str:
        return self.separator.join(itertools.compress(labels, value))

    def right_answer(self, example: TextExample, labels: Sequence[str]) -> str | None:
        return self.separator.join(example.label) if isinstance(example.label, tuple) else None


@dataclasses.dataclass(frozen=True, eq=False)
class RegressionTask(TextTask):
    """A task in which each text, or pair of texts, has a number."""

    labels: tuple[str, ...] = dataclasses.field(default=(), init=False)

    objective = objectives.RegressionObjective
    averages = ("values",)

    def targets(self, examples: list[TextExample], labels: Sequence[str]) -> dict[str, np.ndarray]:
        return {"label_values": label_values(examples)}

    def answer(
        self, features: Features[list[TextExample]], stored: Sequence[StoredOutputs]
    ) -> Predictions:
        """The mean of the members' numbers."""
        mean = np.mean([member["logits"][:, 0] for member in stored], axis=0)
        return Predictions(mean.astype(np.float64).tolist())
