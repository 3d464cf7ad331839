"""Averages over the members of an ensemble, for classes: three that may answer differently.

logits float [M, N, C] of M members -> scores float [N, C], by which the class of a row is chosen
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.special

from albert_tf.finetuning.tasks.base import Predictions, StoredOutputs


def mean_probabilities(logits: np.ndarray) -> np.ndarray:
    """The mean of the members' probabilities, as the paper averages "predictions"."""
    return scipy.special.softmax(logits, axis=-1).mean(axis=0)


def probabilities_of_mean_logits(logits: np.ndarray) -> np.ndarray:
    """The probabilities of the mean logits: members that are very sure count for more."""
    return scipy.special.softmax(logits.mean(axis=0), axis=-1)


def vote_shares(logits: np.ndarray) -> np.ndarray:
    """The classes' shares of the members' votes."""
    # Of equal classes, argmax takes the lowest, here and when it is applied to these shares.
    return np.eye(logits.shape[-1])[logits.argmax(axis=-1)].mean(axis=0)


# The values of --average.
AVERAGES = {
    "probabilities": mean_probabilities,
    "logits": probabilities_of_mean_logits,
    "votes": vote_shares,
}


def average_labels(
    stored: Sequence[StoredOutputs], average: str | None, threshold: float
) -> Predictions:
    """The labels of each of N rows, as lists of C zeros and ones: those whose average probability
    over the models is at least the threshold; by votes, those predicted by at least half of them.
    """
    logits = np.stack([member["logits"] for member in stored])  # [M, N, C]
    if average == "logits":
        probabilities = scipy.special.expit(logits.mean(axis=0))
    else:
        probabilities = scipy.special.expit(logits)
        if average == "votes":
            probabilities, threshold = (probabilities >= threshold).astype(np.float64), 0.5
        probabilities = probabilities.mean(axis=0)
    return Predictions((probabilities >= threshold).astype(int).tolist(), probabilities)


def average_classes(stored: Sequence[StoredOutputs], average: str | None) -> Predictions:
    """The likeliest of C classes for each of N rows, by an average of the models' logits."""
    logits = np.stack([member["logits"] for member in stored])  # [M, N, C]
    probabilities = AVERAGES[average or next(iter(AVERAGES))](logits)
    return Predictions(probabilities.argmax(axis=1).tolist(), probabilities)
