"""Intervals of the difference between two ways: by bootstrap over examples, by t over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

Score = Callable[[np.ndarray, np.ndarray], float]


def median_difference(score: Score, labels: np.ndarray, left: np.ndarray, right: np.ndarray):
    """The median score of the runs on the left less the median score of the runs on the right.

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
    """The 95 % interval of `median_difference` over other examples and other seeds.

    Every sample draws N examples with replacement, the same for both sides, and as many runs of
    each side as there are. `left` and `right` are predictions [runs, N]; the numbers of runs may
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
    """The 95 % interval of the mean of paired differences, at least two: Student's t."""
    count, mean = len(differences), float(np.mean(differences))
    error = float(np.std(differences, ddof=1)) / count**0.5
    width = float(stats.t.ppf(0.975, count - 1)) * error
    return mean - width, mean + width
