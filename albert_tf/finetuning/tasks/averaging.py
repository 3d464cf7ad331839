"""Averages over the members of an ensemble, for classes: three that give different answers."""

from __future__ import annotations

import numpy as np
import scipy.special


def mean_probabilities(logits: np.ndarray) -> np.ndarray:
    """The mean of the members' probabilities, as the paper averages "predictions".

    Args:
      logits: float [M, N, C] of M members.

    Returns:
      float [N, C].
    """
    return scipy.special.softmax(logits, axis=-1).mean(axis=0)


def probabilities_of_mean_logits(logits: np.ndarray) -> np.ndarray:
    """The probabilities of the mean logits, float [M, N, C] -> float [N, C].

    Members that are very sure count for more than in `mean_probabilities`.
    """
    return scipy.special.softmax(logits.mean(axis=0), axis=-1)


def vote_shares(logits: np.ndarray) -> np.ndarray:
    """The classes' shares of the members' votes, float [M, N, C] -> float [N, C].

    Their first maximum is the class that most members choose, the lowest of equal ones.
    """
    return np.eye(logits.shape[-1])[logits.argmax(axis=-1)].mean(axis=0)


# --average by name.
AVERAGES = {
    "probabilities": mean_probabilities,
    "logits": probabilities_of_mean_logits,
    "votes": vote_shares,
}
