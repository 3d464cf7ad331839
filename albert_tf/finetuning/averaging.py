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


def majority_votes(logits: np.ndarray) -> np.ndarray:
    """The class that most members choose, float [M, N, C] -> int [N]; the lowest of equal ones."""
    chosen = logits.argmax(axis=-1)  # [M, N]
    counts = (chosen[..., None] == np.arange(logits.shape[-1])).sum(axis=0)  # [N, C]
    return counts.argmax(axis=-1)
