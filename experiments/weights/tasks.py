"""The tasks on which the shipped weights are judged: examples, score, published figures."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from albert_tf.metrics import classification, correlation
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.glue import GLUE_TASKS, read_glue


@dataclasses.dataclass(frozen=True)
class WeightsTask:
    """A task of GLUE, and how it is scored here.

    Attributes:
      name: such as "sst-2".
      score_name: of the score, as the table shows it.
      function: labels and predictions of N examples -> the score; classes are numbers.
      bert_tiny: the score that BERT-Tiny's model card states for GLUE's test set, in percent; None:
        it states none.
    """

    name: str
    score_name: str
    function: Callable[[Sequence[Any], Sequence[Any]], float | None]
    bert_tiny: float | None

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the classes; None: numbers are predicted."""
        return GLUE_TASKS[self.name].labels

    def read(self, data_dir: str, split: str, max_examples: int = 0) -> Split:
        """The examples of a split, or `max_examples` of them drawn by a fixed seed, in order."""
        found = read_glue(self.name, data_dir, split)
        if not max_examples or len(found) <= max_examples:
            return found
        chosen = sorted(random.Random(0).sample(range(len(found)), max_examples))
        return dataclasses.replace(found, examples=[found.examples[place] for place in chosen])

    def numbers(self, values: Sequence[Any]) -> np.ndarray:
        """Names of classes as their places in `labels`; numbers as they are."""
        if self.labels is None:
            return np.array([float(value) for value in values])
        places = {label: place for place, label in enumerate(self.labels)}
        return np.array([places[value] for value in values])

    def score(self, labels: np.ndarray, predictions: np.ndarray) -> float:
        """The score in percent; 0 where it is undefined, as for one answer to all examples."""
        return 100 * (self.function(labels, predictions) or 0.0)


# BERT-Tiny's row: https://huggingface.co/google/bert_uncased_L-2_H-128_A-2
WEIGHTS_TASKS = {
    task.name: task
    for task in (
        WeightsTask("cola", "MCC", classification.matthews_corrcoef, 0.0),
        WeightsTask("sst-2", "accuracy", classification.accuracy, 83.2),
        WeightsTask("mrpc", "F1", classification.f1, 81.1),
        WeightsTask("sts-b", "Spearman", correlation.spearman, 73.6),
        WeightsTask("rte", "accuracy", classification.accuracy, 57.2),
        WeightsTask("wnli", "accuracy", classification.accuracy, None),
    )
}
