"""A fine-tuning task: how files become rows, and a model's outputs become answers and scores.

    files -> read -> examples -> features -> rows -> model -> outputs
    outputs -> keep (what an ensemble needs) -> answer -> Predictions -> score, write

Each form of task is a class: texts.py, pairs.py, choices.py, tagging.py, squad.py. A task of a
benchmark is an instance of one of them; table.py has all tasks by name.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.metrics import Scorer, Scores, remarks
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.tokenizers.base import Tokenizer

# The stored part of a model's outputs on N rows, as arrays by name: all that is needed to answer,
# alone or together with other models.
StoredOutputs: TypeAlias = dict[str, np.ndarray]
# (folder or path of a file, name of the split) -> examples.
Reader: TypeAlias = Callable[[str, str], Split]
# What the rows of a form of task are made from: a list of examples, windows of contexts, ...
Source = TypeVar("Source")


@dataclasses.dataclass(frozen=True)
class TaskData:
    """The data of a task: a folder, files, or examples in memory.

    Attributes:
      data_dir: the benchmark's root, or the task's own folder.
      files: split -> its file, instead of one in `data_dir`.
      splits: split -> examples that are already read, instead of files.
      train_records: folder of create_finetuning_data with the training examples, instead of
        their files.
    """

    data_dir: str | None = None
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    splits: Mapping[str, Split] = dataclasses.field(default_factory=dict)
    train_records: str | None = None


class Predictions(NamedTuple):
    """The answers to the examples of a split.

    Attributes:
      values: one for each of N examples, as the scorer takes them: indices of classes, lists of 0
        and 1 if examples have several labels, numbers, tags, texts.
      probabilities: float [N, C], where there are classes; of tags [W, C], of all W words.
      details: further content of the task's output files.
    """

    values: Sequence[Any]
    probabilities: np.ndarray | None = None
    details: Any = None


@dataclasses.dataclass(frozen=True, eq=False)
class Task(abc.ABC, Generic[Source]):
    """A fine-tuning task.

    Attributes:
      name: such as mrpc.
      reader: reads a split from the benchmark's folder; None: data are the user's files.
      labels: names of the C classes in order; () for none; None: the training examples' own.
      file_reader: reads a split from a single file; None: a benchmark, whose files are in a folder.
      train_split: "": the task has no training examples, and can only be predicted.
      dev_splits: splits that are scored in training; the first decides which checkpoint is best.
      test_splits: splits that are predicted.
      average: how outputs of several models are averaged, one of `averages`; None: the first.
    """

    name: str
    reader: Reader | None
    labels: tuple[str, ...] | None
    _: dataclasses.KW_ONLY
    file_reader: Reader | None = None
    train_split: str = "train"
    dev_splits: tuple[str, ...] = ("dev",)
    test_splits: tuple[str, ...] = ("test",)
    average: str | None = None

    # The same for all tasks of a form.
    model_class: ClassVar[type[keras.Model]]
    objective: ClassVar[type]  # Model -> losses and metrics of training, see objectives.Objective.
    example_type: ClassVar[type] = object  # The type of the examples in its splits.
    averages: ClassVar[tuple[str, ...]] = ()  # Names of ways to average over models.
    rows_are_examples: ClassVar[bool] = True  # False: other lengths give other rows.
    lengths: ClassVar[tuple[str, ...]] = ("max_seq_length",)  # Fields of LengthSettings it uses.
    uneven_outputs: ClassVar[tuple[str, ...]] = ()  # Stored arrays whose size differs by model.
    scores_are_percent: ClassVar[bool] = False  # False: shares and correlations, up to 1.
    export_task: ClassVar[str | None] = None  # --task of run_export that its runs suggest.

    @property
    @abc.abstractmethod
    def metrics(self) -> tuple[str, ...]:
        """Names of the scores."""

    @property
    @abc.abstractmethod
    def key(self) -> str:
        """Name of the score that decides which checkpoint is best; higher is better."""

    @property
    def data_settings(self) -> Mapping[str, str | bool | float | None]:
        """The settings that examples and rows depend on, besides lengths, by flag."""
        return {}

    def read(self, data: TaskData, split: str) -> Split:
        """The examples of a split; UserError, with file and line, if the data are wrong."""
        if data.files and self.file_reader is None:
            raise UserError(
                f"--task={self.name} reads the files of its benchmark in --data_dir, not "
                f"{next(iter(data.files.values()))}. Use --task=tsv for a file of your own."
            )
        if split in data.splits:
            given = data.splits[split]
            if not all(isinstance(example, self.example_type) for example in given.examples[:1]):
                raise UserError(
                    f"{given.source} holds {type(given.examples[0]).__name__}s, and --task="
                    f"{self.name} reads {self.example_type.__name__}s. Name the task of these "
                    "examples, or convert them."
                )
            return given
        if split in data.files and self.file_reader:
            return self.file_reader(data.files[split], split)
        flag = f"--{split if split in (self.train_split, *self.dev_splits) else 'predict'}_file"
        if self.reader is None:
            raise UserError(
                f"{flag} is missing, and --task={self.name} needs it: the file of the {split} "
                "examples."
            )
        if not data.data_dir:
            or_file = f", or {flag}" if self.file_reader else ""
            raise UserError(
                f"--data_dir is missing: the folder with the data of {self.name}{or_file}."
            )
        return self.reader(data.data_dir, split)

    def labels_in(self, examples: Split) -> tuple[str, ...]:
        """Names of the classes: the task's own, or the labels of the training examples."""
        return tuple(self.find_labels(examples)) if self.labels is None else self.labels

    def find_labels(self, examples: Split) -> Sequence[str]:
        """Names of the classes of examples, in order, for a task without `labels`."""
        raise NotImplementedError(f"task {self.name}: give it `labels`, or define `find_labels`")

    @abc.abstractmethod
    def features(
        self,
        split: Split,
        tokenizer: Tokenizer,
        lengths: LengthSettings,
        labels: Sequence[str],
        with_targets: bool = True,
    ) -> Features[Source]:
        """Examples as N rows of the model's inputs, with what is to be learned from each.

        Args:
          with_targets: False: the examples are unlabeled, even if their file has labels.

        Raises:
          UserError: a label is missing or unknown, with file and line, or lengths do not fit.
        """

    def for_training(self, training: Features, dev: Features) -> Task[Source]:
        """The task with settings derived from the examples of a run: those for training, and those
        of the dev split that decides which checkpoint is best.
        """
        return self

    def scored_on(self, features: Features) -> Task[Source]:
        """The task with the score that suits the examples of a split."""
        return self

    def new_objective(self, model: keras.Model) -> Any:
        """The `objective` of a model."""
        return self.objective(model)

    def new_model(
        self, config: AlbertConfig, labels: Sequence[str], dropout_rate: float, packed: bool | None
    ) -> keras.Model:
        """A model with random weights; without labels it has one output."""
        return self.model_class(config, packed=packed, **self.head(labels, dropout_rate))

    @abc.abstractmethod
    def head(self, labels: Sequence[str], dropout_rate: float) -> dict[str, float]:
        """The arguments of `model_class` that are about the output layer."""

    def num_outcomes(self, labels: Sequence[str]) -> int:
        """The number of outcomes of one decision, where there are labels: C."""
        return len(labels)

    @abc.abstractmethod
    def keep(self, features: Features[Source], outputs: Mapping[str, np.ndarray]) -> StoredOutputs:
        """The part of a model's outputs that answers are made from, and that runs store."""

    @abc.abstractmethod
    def answer(self, features: Features[Source], stored: Sequence[StoredOutputs]) -> Predictions:
        """The answers of a model, or of several as an ensemble: `stored` has the result of `keep`
        for each.
        """

    @abc.abstractmethod
    def score(self, features: Features[Source], predictions: Predictions) -> Scores:
        """The scores of answers by name; the features have targets."""

    @abc.abstractmethod
    def write(
        self, path: str, features: Features[Source], labels: Sequence[str], predictions: Predictions
    ) -> list[str]:
        """Writes answers to files and returns their paths; `path` is without their endings."""

    def gold(self, features: Features[Source]) -> Sequence[Any] | None:
        """The right answers, as `Predictions.values`; None: an example may have several."""
        return None

    def remarks(
        self, features: Features[Source], predictions: Predictions, labels: Sequence[str] = ()
    ) -> list[str]:
        """Sentences about answers that show that nothing was learned, with labels, not indices."""
        gold, values = self.gold(features), predictions.values
        if gold is not None and labels and isinstance(values[0], int):
            gold, values = [labels[place] for place in gold], [labels[place] for place in values]
        return remarks(gold, values)

    @property
    def answer_settings(self) -> dict[str, Any]:
        """Entries of model.json that answers depend on, besides the data's settings."""
        return {}

    def as_in(self, metadata: Mapping[str, Any]) -> Task[Source]:
        """The task with the `answer_settings` of a model folder, unless it has its own."""
        return self

    @property
    def is_settled(self) -> bool:
        """False: answers depend on a value that has to be chosen on examples with known answers."""
        return True

    def settled(self, scores: Scores) -> Task[Source]:
        """The task with the values that were chosen with these scores, such as a threshold."""
        return self

    def averaging(self, average: str | None) -> Task[Source]:
        """The task with another average of several models' outputs; UserError for one that it does
        not have.
        """
        if average is not None and average not in self.averages:
            known = ", ".join(self.averages) or "none; leave --average out"
            raise UserError(
                f"--average={average} is not an average of --task={self.name}; there are: {known}."
            )
        return dataclasses.replace(self, average=average)


@dataclasses.dataclass(frozen=True, eq=False)
class ScoredTask(Task[Source]):
    """A task whose answers a scorer of albert_tf/metrics compares with the right ones."""

    scorer: Scorer

    @property
    def metrics(self) -> tuple[str, ...]:
        return self.scorer.metrics

    @property
    def key(self) -> str:
        return self.scorer.key
