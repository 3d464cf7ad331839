"""Averages of an ensemble equal those of the reference's numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from albert_tf.finetuning.tasks.averaging import (
    mean_probabilities,
    probabilities_of_mean_logits,
    vote_shares,
)

GOLDEN = Path(__file__).parents[3] / "goldens" / "finetuning" / "metrics" / "ensemble.npz"


@pytest.fixture
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as file:
        return dict(file)


def test_both_means(golden):
    for function, name, label in (
        (mean_probabilities, "mean_probabilities", "label_by_mean_probability"),
        (probabilities_of_mean_logits, "probabilities_of_mean_logits", "label_by_mean_logit"),
    ):
        probabilities = function(golden["logits"])
        np.testing.assert_allclose(probabilities, golden[name], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(probabilities.argmax(axis=-1), golden[label])


def test_votes(golden):
    shares = vote_shares(golden["logits"])
    np.testing.assert_array_equal(shares.argmax(axis=-1), golden["label_by_vote"])
    one_each = np.eye(3)[[2, 1, 1, 2]][:, None]  # Two votes for 1, two for 2.
    np.testing.assert_array_equal(vote_shares(one_each), [[0, 0.5, 0.5]])
    assert vote_shares(one_each).argmax(axis=-1) == [1]


def test_they_differ(golden):
    labels = (golden["label_by_mean_probability"], golden["label_by_mean_logit"])
    assert (labels[0] != labels[1]).any()
