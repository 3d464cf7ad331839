"""Confidence intervals of differences: bootstrap over examples, Student's t over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

Score = Callable[[np.ndarray, np.ndarray], float]


def median_difference(score: Score, labels: np.ndarray, left: np.ndarray, right: np.ndarray):
    """The median score of the left runs minus the median score of the right runs.

    labels: [N]; left, right: [runs, N] predictions.
    """
    medians = [np.median([score(labels, run) for run in runs]) for runs in (left, right)]
    return float(medians[0] - medians[1])


def paired_interval(
    score: Score,
    labels: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    *,
    num_samples: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """The 95 % bootstrap interval of `median_difference` over examples and seeds.

    Every sample draws N examples with replacement, the same for both sides, and as many runs of
    each side as it has. `left` and `right` are predictions [runs, N]; the numbers of runs may
    differ.
    """
    generator = np.random.default_rng(seed)
    differences = []
    for _ in range(num_samples):
        places = generator.integers(len(labels), size=len(labels))
        drawn = [runs[generator.integers(len(runs), size=len(runs))] for runs in (left, right)]
        sampled = [runs[:, places] for runs in drawn]
        differences.append(median_difference(score, labels[places], *sampled))
    low, high = np.percentile(differences, [2.5, 97.5])
    return float(low), float(high)


def t_interval(differences: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval (Student's t) of the mean of at least two paired differences."""
    count, mean = len(differences), float(np.mean(differences))
    error = float(np.std(differences, ddof=1)) / count**0.5
    width = float(stats.t.ppf(0.975, count - 1)) * error
    return mean - width, mean + width
