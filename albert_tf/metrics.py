"""Scores of finished predictions, by scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence

import sklearn.metrics


def classification_scores(labels: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
    """The scores "accuracy" and "macro F1" in [0, 1], "Matthews correlation" in [-1, 1]."""
    return {
        "accuracy": float(sklearn.metrics.accuracy_score(labels, predicted)),
        "macro F1": float(
            sklearn.metrics.f1_score(labels, predicted, average="macro", zero_division=0)
        ),
        "Matthews correlation": float(sklearn.metrics.matthews_corrcoef(labels, predicted)),
    }
