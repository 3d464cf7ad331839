"""The tasks on which weights are evaluated: examples, answers, score, published figures."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_tf.finetuning.runs.run_files import answers_path
from albert_tf.finetuning.tasks.answer_tables import read_predictions
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.squad_scores import f1_v1
from albert_tf.finetuning.tasks.table import get_task
from albert_tf.metrics import classification, correlation
from data_pipeline.finetuning.examples import Split


@dataclasses.dataclass(frozen=True)
class WeightsTask:
    """A task and its score.

    Attributes:
      name: such as "sst-2".
      score_name: name of the score in the table.
      function: right answers and predictions of N examples -> the score; classes are numbers.
      bert_tiny: the score in BERT-Tiny's model card for GLUE's test set, in percent; None: the card
        states none.
    """

    name: str
    score_name: str
    function: Callable[[Sequence[Any], Sequence[Any]], float | None]
    bert_tiny: float | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes; (): numbers are predicted."""
        return get_task(self.name).labels or ()

    def read(self, data_dir: str, split: str, max_examples: int = 0) -> Split:
        """The examples of a split, or `max_examples` of them drawn with a fixed seed, in order."""
        found = get_task(self.name).read(TaskData(data_dir), split)
        if not max_examples or len(found) <= max_examples:
            return found
        chosen = sorted(random.Random(0).sample(range(len(found)), max_examples))
        return dataclasses.replace(found, examples=[found.examples[place] for place in chosen])

    def gold(self, split: Split) -> np.ndarray:
        """The right answers, [N]."""
        task: Any = get_task(self.name)
        return self.numbers([task.right_answer(each, self.labels) for each in split.examples])

    def answers(self, run: str, split: Split) -> list[Any]:
        """The N answers of a finished run, in JSON form."""
        return read_predictions(f"{answers_path(run, self.name, split.name)}.tsv")

    def numbers(self, values: Sequence[Any]) -> np.ndarray:
        """Names of classes as indices in `labels`; numbers unchanged."""
        if not self.labels:
            return np.array([float(value) for value in values])
        places = {label: place for place, label in enumerate(self.labels)}
        return np.array([places[value] for value in values])

    def score(self, labels: np.ndarray, predictions: np.ndarray) -> float:
        """The score in percent; 0 if undefined, such as for the same answer to all examples."""
        return 100 * (self.function(labels, predictions) or 0.0)


class SquadWeightsTask(WeightsTask):
    """SQuAD 1.1; each question is represented by the F1 of its answer."""

    def gold(self, split: Split) -> np.ndarray:
        return np.ones(len(split))

    def answers(self, run: str, split: Split) -> list[float]:
        path = Path(f"{answers_path(run, self.name, split.name)}_predictions.json")
        texts = json.loads(path.read_text(encoding="utf-8"))
        return [
            max(f1_v1(answer.text, texts[question.id]) for answer in question.answers)
            for question in split.examples
        ]


# BERT-Tiny's row: https://huggingface.co/google/bert_uncased_L-2_H-128_A-2
WEIGHTS_TASKS = {
    task.name: task
    for task in (
        WeightsTask("cola", "MCC", classification.matthews_corrcoef, 0.0),
        WeightsTask("sst-2", "accuracy", classification.accuracy, 83.2),
        WeightsTask("mrpc", "F1", classification.f1, 81.1),
        WeightsTask("sts-b", "Spearman", correlation.spearman, 73.6),
        WeightsTask("rte", "accuracy", classification.accuracy, 57.2),
        WeightsTask("wnli", "accuracy", classification.accuracy),
        WeightsTask("race", "accuracy", classification.accuracy),
        SquadWeightsTask("squad1.1", "F1", lambda gold, found: float(np.mean(found))),
    )
}
