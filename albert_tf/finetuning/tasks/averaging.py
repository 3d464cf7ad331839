"""Averages over the models of an ensemble, for classes and labels; `stored` has the logits of each,
float [N, C].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.special

from albert_tf.finetuning.tasks.base import Predictions, StoredOutputs

AVERAGES = ("probabilities", "logits", "votes")  # The values of --average; the first: by default.


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
    """The likeliest of C classes for each of N rows, by one of AVERAGES over the models: the mean
    of their probabilities, as the paper averages "predictions"; the probabilities of their mean
    logits, where models that are very sure count for more; the classes' shares of their votes.
    """
    logits = np.stack([member["logits"] for member in stored])  # [M, N, C]
    if average == "logits":
        probabilities = scipy.special.softmax(logits.mean(axis=0), axis=-1)
    elif average == "votes":
        # Of equal classes, argmax takes the lowest, here and when it is applied to these shares.
        probabilities = np.eye(logits.shape[-1])[logits.argmax(axis=-1)].mean(axis=0)
    else:
        probabilities = scipy.special.softmax(logits, axis=-1).mean(axis=0)
    return Predictions(probabilities.argmax(axis=1).tolist(), probabilities)
