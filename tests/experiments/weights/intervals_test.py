"""Intervals of paired differences: narrow for what is paired, wide for few examples."""

import numpy as np

from experiments.weights.intervals import median_difference, paired_interval


def accuracy(labels, predictions):
    return float(np.mean(labels == predictions))


def test_median_difference():
    labels = np.array([0, 1, 1, 0])
    left = np.array([[0, 1, 1, 0], [0, 1, 1, 1], [1, 0, 0, 1]])
    assert median_difference(accuracy, labels, left, labels[None]) == -0.25


def test_runs_that_answer_alike_do_not_differ():
    labels = np.random.default_rng(0).integers(2, size=50)
    runs = np.stack([1 - labels, 1 - labels])
    assert paired_interval(accuracy, labels, runs, runs, num_samples=20) == (0, 0)


def test_the_interval_is_that_of_the_normal_approximation():
    """The left is right in everything, the right in 70 % of 400: 0.3 with an error of 0.0229."""
    labels = np.zeros(400, int)
    right = np.repeat([0, 1], [280, 120])[None]
    low, high = paired_interval(accuracy, labels, labels[None], right)
    assert abs(low - (0.3 - 1.96 * 0.0229)) < 0.008 and abs(high - (0.3 + 1.96 * 0.0229)) < 0.008
