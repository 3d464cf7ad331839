"""Scores of retrieval, from 1 / rank of the right text for each of N texts: 1, 1/2, 1/3, ..."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Values = Sequence[float]


def accuracy_at_1(labels: Values, predictions: Values) -> float:
    """The share of texts whose nearest text is the right one; labels are all 1."""
    return float(np.mean(np.equal(labels, predictions)))


def mean_reciprocal_rank(labels: Values, predictions: Values) -> float:
    """The mean of 1 / rank."""
    return float(np.mean(predictions))
