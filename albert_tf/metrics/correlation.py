"""Scores of numbers: predicted values compared with the right ones, by scipy and scikit-learn;
and scores of retrieval, from 1 / rank of the right text for each of N texts: 1, 1/2, 1/3, ...

A correlation with constant values is 0 / 0. It is None here, never nan: so it differs from a bad
one, becomes null in JSON, and never counts as the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy.stats
import sklearn.metrics

Values = Sequence[float]


def pearson(labels: Values, predictions: Values) -> float | None:
    """Pearson's correlation in [-1, 1]; None if it is undefined."""
    return _correlation(scipy.stats.pearsonr, labels, predictions)


def spearman(labels: Values, predictions: Values) -> float | None:
    """Spearman's correlation in [-1, 1], of ranks, where equal values share the mean of theirs.

    None if it is undefined.
    """
    return _correlation(scipy.stats.spearmanr, labels, predictions)


def mean_squared_error(labels: Values, predictions: Values) -> float | None:
    """The mean of the squared differences; None if a prediction is not a finite number."""
    if not np.isfinite(predictions).all():
        return None
    return float(sklearn.metrics.mean_squared_error(labels, predictions))


def accuracy_at_1(labels: Values, predictions: Values) -> float:
    """The share of texts whose nearest text is the right one; labels are all 1."""
    return float(np.mean(np.equal(labels, predictions)))


def mean_reciprocal_rank(labels: Values, predictions: Values) -> float:
    """The mean of 1 / rank."""
    return float(np.mean(predictions))


def _correlation(function: Callable, labels: Values, predictions: Values) -> float | None:
    # Checked first, because both functions warn of constant values on stderr for each checkpoint.
    for values in (labels, predictions):
        if not np.isfinite(values).all() or np.ptp(values) == 0:
            return None
    value = float(function(labels, predictions)[0])
    return value if math.isfinite(value) else None
