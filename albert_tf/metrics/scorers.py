"""The table of tasks: the scores of each, and the one that decides which checkpoint is the best.

SQuAD's official scores need texts and are not in it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from albert_tf.metrics import classification, correlation, tagging

# Name of a score, that of scikit-learn's or scipy's function -> value; None if undefined.
Scores = dict[str, float | None]


@dataclasses.dataclass(frozen=True)
class Scorer:
    """The scores of a task.

    Attributes:
      score: labels and predictions of N examples -> scores by name. Classes are numbers, their
        places in the task's list of labels.
      names: the names of these scores.
      key: name of the score by which checkpoints are compared; higher is better.
      glue: names of the scores whose mean is GLUE's score of the task.
      groups: names of groups of examples that also get scores of their own, such as RACE's levels.
    """

    score: Callable[[Sequence[Any], Sequence[Any]], Scores]
    names: tuple[str, ...]
    key: str
    glue: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of all scores, including those of groups."""
        of_groups = [f"{name}_{group}" for group in self.groups for name in self.names]
        return (*self.names, *of_groups)

    def __call__(
        self, labels: Sequence[Any], predictions: Sequence[Any], groups: Sequence[str] | None = None
    ) -> Scores:
        """All scores, from one pass over the predictions.

        With the groups middle and high: accuracy, accuracy_middle, accuracy_high. Scores of a group
        without examples are None. Raises ValueError if lengths differ or a group is unknown.
        """
        if not len(labels) or len(labels) != len(predictions):
            raise ValueError(
                f"expected as many predictions as labels and at least one; received "
                f"{len(predictions)} for {len(labels)}"
            )
        scores = dict(self.score(labels, predictions))
        if not self.groups:
            return scores
        if groups is None or len(groups) != len(labels) or not set(groups) <= set(self.groups):
            raise ValueError(
                f"expected one of the groups {', '.join(self.groups)} for each of {len(labels)} "
                "examples"
            )
        for group in self.groups:
            members = [number for number, name in enumerate(groups) if name == group]
            of_group: Scores = dict.fromkeys(self.names)
            if members:
                chosen = ([values[n] for n in members] for values in (labels, predictions))
                of_group = self.score(*chosen)
            scores.update({f"{name}_{group}": value for name, value in of_group.items()})
        return scores


def _named(*functions: Callable) -> tuple[Callable[..., Scores], tuple[str, ...]]:
    """The scores of several functions by the functions' names, and these names."""

    def score(labels: Sequence[Any], predictions: Sequence[Any]) -> Scores:
        return {function.__name__: function(labels, predictions) for function in functions}

    return score, tuple(function.__name__ for function in functions)


_ACCURACY = _named(classification.accuracy)
_ACCURACY_AND_F1 = _named(classification.accuracy, classification.f1)
_ACCURACY_AND_F1_MACRO = _named(classification.accuracy, classification.f1_macro)
_ACCURACY_AND_MATTHEWS = _named(classification.accuracy, classification.matthews_corrcoef)
_CORRELATIONS = _named(correlation.pearson, correlation.spearman, correlation.mean_squared_error)
_RETRIEVAL = _named(correlation.accuracy_at_1, correlation.mean_reciprocal_rank)
_CLASSES = _named(
    classification.accuracy, classification.f1_macro, classification.matthews_corrcoef
)
_LABELS = (classification.multi_label_scores, ("f1_micro", "f1_macro", "subset_accuracy"))
_SPANS = (tagging.span_scores, tagging.SCORES)

# Keys follow google-research/albert, whose published scores were chosen by them. GLUE's own
# definitions: MRPC and QQP count the mean of accuracy and F1, STS-B that of both correlations.
SCORERS: dict[str, Scorer] = {
    "cola": Scorer(*_ACCURACY_AND_MATTHEWS, "matthews_corrcoef", ("matthews_corrcoef",)),
    "sst-2": Scorer(*_ACCURACY, "accuracy", ("accuracy",)),
    "mrpc": Scorer(*_ACCURACY_AND_F1, "accuracy", ("accuracy", "f1")),
    "sts-b": Scorer(*_CORRELATIONS, "pearson", ("pearson", "spearman")),
    "qqp": Scorer(*_ACCURACY_AND_F1, "accuracy", ("accuracy", "f1")),
    "mnli": Scorer(*_ACCURACY, "accuracy", ("accuracy",)),
    "qnli": Scorer(*_ACCURACY, "accuracy", ("accuracy",)),
    "rte": Scorer(*_ACCURACY, "accuracy", ("accuracy",)),
    "wnli": Scorer(*_ACCURACY, "accuracy", ("accuracy",)),
    "ax": Scorer(*_ACCURACY_AND_MATTHEWS, "matthews_corrcoef", ("matthews_corrcoef",)),
    "race": Scorer(*_ACCURACY, "accuracy", groups=("middle", "high")),
    "boolq": Scorer(*_ACCURACY, "accuracy"),
    "cb": Scorer(*_ACCURACY_AND_F1_MACRO, "accuracy"),
    "copa": Scorer(*_ACCURACY, "accuracy"),
    "tsv": Scorer(*_CLASSES, "accuracy"),
    "multi_label": Scorer(*_LABELS, "f1_micro"),
    "regression": Scorer(*_CORRELATIONS, "pearson"),
    "pairs": Scorer(*_CORRELATIONS, "spearman"),
    "retrieval": Scorer(*_RETRIEVAL, "mean_reciprocal_rank"),
    "tagging": Scorer(*_SPANS, "f1"),
}
"""Name of a task -> its scores, and the one that chooses the best model."""
# AX, the diagnostic set, is not among them.
SCORED_GLUE_TASKS = ("cola", "sst-2", "mrpc", "sts-b", "qqp", "mnli", "qnli", "rte", "wnli")


def glue_task_score(task: str, scores: Mapping[str, float | None]) -> float | None:
    """GLUE's score of one task, the mean of the scores in `glue`; None if one is undefined."""
    return _mean([scores[name] for name in SCORERS[task].glue])


def glue_score(
    scores: Mapping[str, Mapping[str, float | None]], mnli_mismatched: Mapping[str, float | None]
) -> float | None:
    """The GLUE score in [-1, 1]: the mean over nine tasks; None if a task's score is undefined.

    MNLI counts with the mean of its two sets; `scores` has the matched one.
    """
    missing = [task for task in SCORED_GLUE_TASKS if task not in scores]
    if missing:
        raise ValueError(f"the GLUE score is of nine tasks; missing: {', '.join(missing)}")
    by_task = {task: glue_task_score(task, scores[task]) for task in SCORED_GLUE_TASKS}
    both = [by_task["mnli"], glue_task_score("mnli", mnli_mismatched)]
    return _mean(list({**by_task, "mnli": _mean(both)}.values()))


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return sum(defined) / len(values) if len(defined) == len(values) else None


def is_better(score: float | None, best: float | None) -> bool:
    """Whether a score beats the best one so far (None: there is none); undefined and nan never
    do.
    """
    # An equal score is not better: the first maximum stays, as in google-research/albert.
    if score is None or not math.isfinite(score):
        return False
    return best is None or score > best


def remarks(labels: Sequence[Any] | None, predictions: Sequence[Any]) -> list[str]:
    """Messages for the user, if the predictions show that nothing was learned; `labels` are None if
    there is no single right answer.
    """
    if labels is not None and isinstance(predictions[0], tuple):  # The tags of sentences.
        labels = [tag for tags in labels for tag in tags]
        predictions = [tag for tags in predictions for tag in tags]
    # Classes, tags and texts are no numbers.
    if not all(math.isfinite(each) for each in predictions if isinstance(each, float)):
        return ["Some predictions are not finite numbers: correlations are undefined."]
    # One example proves nothing, and if all labels are alike, equal predictions may be right.
    if len(predictions) == 1 or not _are_alike(predictions):
        return []
    if labels is not None and _are_alike(labels):
        return []
    sentence = f"Every prediction is {predictions[0]!r}"
    if isinstance(predictions[0], float):
        return [f"{sentence}: correlations are undefined. Try a lower learning rate."]
    if labels is not None:
        right = sum(label == predictions[0] for label in labels)
        sentence += f", which is right for {right / len(labels):.1%}"
    return [
        f"{sentence}: the model does not distinguish examples. Try a lower learning rate, "
        "more warm-up or another seed."
    ]


def _are_alike(values: Sequence[Any]) -> bool:
    """Whether all values equal the first."""
    return all(value == values[0] for value in values)
