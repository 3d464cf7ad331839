"""Scores of classes: predicted labels compared with the right ones, by scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn.metrics

Labels = Sequence[Any]  # Names or numbers of classes.


def accuracy(labels: Labels, predictions: Labels) -> float:
    """The share of right predictions, in [0, 1]."""
    return float(sklearn.metrics.accuracy_score(labels, predictions))


def f1(labels: Labels, predictions: Labels) -> float:
    """F1 of class 1, in [0, 1]; 0 if it is never predicted, as in GLUE."""
    return float(
        sklearn.metrics.f1_score(labels, predictions, labels=[1], average="macro", zero_division=0)
    )


def f1_macro(labels: Labels, predictions: Labels) -> float:
    """The mean of the classes' F1, in [0, 1]."""
    return float(sklearn.metrics.f1_score(labels, predictions, average="macro", zero_division=0))


def multi_label_scores(labels: Labels, predictions: Labels) -> dict[str, float | None]:
    """Scores of several labels at once, in [0, 1]; both are matrices [N, C] of 0 and 1.

    "f1_micro" is the F1 of all N x C decisions together, "f1_macro" the mean of the labels' F1,
    "subset_accuracy" the share of examples with all labels right. An F1 without any label is 0.
    """
    rows, predicted = np.asarray(labels), np.asarray(predictions)
    if rows.shape[1] == 1:  # scikit-learn would take this for two classes.
        micro = macro = f1(rows, predicted)
    else:
        macro = f1_macro(rows, predicted)
        micro = sklearn.metrics.f1_score(rows, predicted, average="micro", zero_division=0)
    return {
        "f1_micro": float(micro),
        "f1_macro": macro,
        "subset_accuracy": accuracy(rows, predicted),
    }


def matthews_corrcoef(labels: Labels, predictions: Labels) -> float:
    """Matthews correlation in [-1, 1], for more than two classes in Gorodkin's form (2004).

    It is 0, not undefined, if all predictions or all labels are of one class.
    """
    if len({*labels, *predictions}) == 1:
        return 0.0  # Like scikit-learn, but without its warning.
    return float(sklearn.metrics.matthews_corrcoef(labels, predictions))
