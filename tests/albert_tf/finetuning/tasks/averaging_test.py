"""Averages of an ensemble, by name, equal those of the reference's numbers."""

from pathlib import Path

import numpy as np
import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.table import TASKS

GOLDEN = Path(__file__).parents[3] / "goldens" / "finetuning" / "metrics" / "ensemble.npz"


@pytest.fixture
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as file:
        return dict(file)


@pytest.mark.parametrize(
    ("average", "values", "probabilities"),
    [
        (None, "label_by_mean_probability", "mean_probabilities"),
        ("probabilities", "label_by_mean_probability", "mean_probabilities"),
        ("logits", "label_by_mean_logit", "probabilities_of_mean_logits"),
        ("votes", "label_by_vote", None),
    ],
)
def test_classes_equal_the_reference(golden, average, values, probabilities):
    members = [{"logits": logits} for logits in golden["logits"]]
    for task in ("mnli", "race"):
        found = TASKS[task].averaging(average).answer(None, members)
        np.testing.assert_array_equal(found.values, golden[values])
        np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)
        if probabilities:
            expected = golden[probabilities]
            np.testing.assert_allclose(found.probabilities, expected, rtol=0, atol=1e-12)


def test_votes():
    members = [{"logits": np.array([row], np.float32)} for row in ([9, 0, 0], [0, 1, 0], [0, 1, 0])]
    found = TASKS["mnli"].averaging("votes").answer(None, members)
    assert found.values == [1]
    np.testing.assert_allclose(found.probabilities, [[1 / 3, 2 / 3, 0]])
    members = [{"logits": np.eye(3)[[row]]} for row in (2, 1, 1, 2)]  # Two votes for 1, two for 2.
    found = TASKS["mnli"].averaging("votes").answer(None, members)
    np.testing.assert_array_equal(found.probabilities, [[0, 0.5, 0.5]])
    assert found.values == [1]


def test_values_are_averaged():
    members = [{"logits": np.array([[1.0], [2.0]])}, {"logits": np.array([[2.0], [5.0]])}]
    for average in (None, "values"):
        assert TASKS["sts-b"].averaging(average).answer(None, members).values == [1.5, 3.5]


def test_an_average_that_the_task_has_not():
    with pytest.raises(
        UserError, match="--average=votes is not an average of --task=sts-b; there are: values"
    ):
        TASKS["sts-b"].averaging("votes")
