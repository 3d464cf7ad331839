"""Bootstrap intervals of the difference between two ways to answer the same examples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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
