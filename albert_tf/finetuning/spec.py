"""A fine-tuning task in one object: reader, featurizer, model, losses, answers, scorer.

    files -> reader -> examples -> featurizer -> Features -> model -> outputs
    outputs -> kept (what an ensemble needs) -> decode -> Predictions -> scorer -> scores

task_table.py has the table of tasks. `classification`, `regression` (text_tasks.py), and their
likes make the object for tasks of their form.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.metrics import Scores, remarks
from albert_tf.tasks import Task
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.tokenizers.base import Tokenizer

# What is kept of a model's outputs on N rows, as arrays by name: enough for answers, alone or with
# those of other models.
Kept: TypeAlias = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class DataSource:
    """The place of a task's data.

    Attributes:
      data_dir: the benchmark's root, or the task's own folder.
      files: split -> its file, instead of one in `data_dir`.
      splits: split -> examples that were read before, instead of files.
      train_records: folder of create_finetuning_data with the examples to be trained on, instead
        of their files.
    """

    data_dir: str | None = None
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    splits: Mapping[str, Split] = dataclasses.field(default_factory=dict)
    train_records: str | None = None


class Predictions(NamedTuple):
    """The answers to the examples of a split.

    Attributes:
      values: one for each of N examples, as the scorer takes them: places of classes, numbers,
        tags, texts.
      probabilities: float [N, C], where there are classes.
      details: what else the task's files show.
    """

    values: Sequence[Any]
    probabilities: np.ndarray | None = None
    details: Any = None


# (features, what is kept of each model) -> answers.
Decode: TypeAlias = Callable[[Features, Sequence[Kept]], Predictions]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FineTuning:
    """A fine-tuning task.

    Attributes:
      name: such as mrpc.
      reader: (data_dir, split) -> examples; None: the data are files of one's own.
      file_reader: (path, split) -> examples; None: files have to be in a data_dir.
      featurizer: (split, tokenizer, lengths, labels, whether to make targets) -> Features.
      model: class of the model. Of `num_classes` and `dropout_rate` it is given those that its
        constructor takes.
      task: model -> losses and metrics of training.
      keep: (features, outputs) -> what is kept of the outputs.
      decode: (features, what is kept of each model) -> answers; of several models, an ensemble.
      averages: further ways to make one answer of several models' outputs: name -> like `decode`.
      scorer: (features, predictions) -> scores by name.
      gold: features -> the right answers, as `Predictions.values`; None: there are several.
      metrics: names of the scores.
      key: name of the score that decides which checkpoint is best; the highest is.
      write: (path without an ending, features, labels, predictions) -> paths of written files.
      labels: names of the C classes in order; () for none; None: `find_labels` finds them.
      find_labels: examples to be trained on -> names of the classes in order.
      train_split: "": there is nothing to be trained on, only to be predicted.
      dev_splits: splits that are scored in training; the first decides which checkpoint is best.
      test_splits: splits that are predicted.
      data_settings: what reader and featurizer depend on beside lengths, by the names of flags.
      of_model: (this task, content of model.json) -> the task as that model answers it, with what
        its training found, such as a threshold; None: all models answer it alike.
    """

    name: str
    reader: Callable[[str, str], Split] | None = None
    file_reader: Callable[[str, str], Split] | None = None
    featurizer: Callable[[Split, Tokenizer, LengthSettings, Sequence[str], bool], Features]
    model: type[keras.Model]
    task: Callable[[Any], Task]
    keep: Callable[[Features, dict[str, np.ndarray]], Kept]
    decode: Decode
    scorer: Callable[[Features, Predictions], Scores]
    gold: Callable[[Features], Sequence[Any]] | None
    metrics: tuple[str, ...]
    key: str
    write: Callable[[str, Features, Sequence[str], Predictions], list[str]]
    labels: tuple[str, ...] | None
    find_labels: Callable[[Split], Sequence[str]] | None = None
    averages: Mapping[str, Decode] = dataclasses.field(default_factory=dict)
    train_split: str = "train"
    dev_splits: tuple[str, ...] = ("dev",)
    test_splits: tuple[str, ...] = ("test",)
    data_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    of_model: Callable[[FineTuning, Mapping[str, Any]], FineTuning] | None = None

    def read(self, data: DataSource, split: str) -> Split:
        """The examples of a split.

        Raises:
          UserError: the data are missing or wrong, with file and line.
        """
        if split in data.splits:
            return data.splits[split]
        if split in data.files:
            if self.file_reader is None:
                raise UserError(
                    f"--task={self.name} reads the files of its benchmark in --data_dir, not "
                    f"{data.files[split]}. Use --task=tsv for a file of your own."
                )
            return self.file_reader(data.files[split], split)
        if self.reader is None:
            raise UserError(
                f"--{split}_file is missing, and --task={self.name} needs it: the file of the "
                f"{split} examples."
            )
        if not data.data_dir:
            or_file = f", or --{split}_file" if self.file_reader else ""
            raise UserError(
                f"--data_dir is missing: the folder with the data of {self.name}{or_file}."
            )
        return self.reader(data.data_dir, split)

    def remarks(
        self, features: Features, predictions: Predictions, labels: Sequence[str] = ()
    ) -> list[str]:
        """Sentences about answers that mean that nothing was learned.

        Args:
          features: that the answers are to.
          predictions: the answers.
          labels: names of the classes, to be shown instead of their places.
        """
        gold, values = self.gold(features) if self.gold else None, predictions.values
        if gold is not None and labels and isinstance(values[0], int):
            gold, values = [labels[place] for place in gold], [labels[place] for place in values]
        return remarks(gold, values)

    def labels_in(self, examples: Split) -> tuple[str, ...]:
        """Names of the classes: the task's own, or those of the examples to be trained on."""
        if self.labels is not None:
            return self.labels
        assert self.find_labels is not None
        return tuple(self.find_labels(examples))

    def decoder(self, average: str | None) -> Decode:
        """The rule by which the outputs of several models become one answer.

        Args:
          average: a name in `averages`; None: `decode`.

        Raises:
          UserError: the task has no such average.
        """
        if average is None:
            return self.decode
        if average not in self.averages:
            known = ", ".join(self.averages) or "none by name: leave --average out"
            raise UserError(
                f"--average={average} is nothing that --task={self.name} has; there are: {known}."
            )
        return self.averages[average]

    def new_model(
        self, config: AlbertConfig, labels: Sequence[str], dropout_rate: float, packed: bool | None
    ) -> keras.Model:
        """A model with random weights.

        Args:
          config: of the encoder.
          labels: names of the C classes; without any, the model has one output.
          dropout_rate: before the output layer.
          packed: see AlbertModel.

        Returns:
          A model of this task's class.
        """
        offered = {"num_classes": max(1, len(labels)), "dropout_rate": dropout_rate}
        taken = set(offered) & set(inspect.signature(self.model).parameters)
        return self.model(config, packed=packed, **{name: offered[name] for name in taken})
