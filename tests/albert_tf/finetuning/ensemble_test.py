"""Choice of members, averages by name, and the table of an ensemble."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.benchmarks import TASKS
from albert_tf.finetuning.ensemble import choose_greedily, table_text, take_all
from albert_tf.metrics import Scores

GOLDEN = Path(__file__).parents[2] / "goldens" / "finetuning" / "metrics" / "ensemble.npz"


def table_of(scores: dict[tuple[int, ...], float | None]):
    """Numbers of members -> their score, whatever their order."""
    return lambda numbers: {"f1": scores[tuple(sorted(numbers))]}


SCORES = {
    (0,): 0.5,
    (1,): 0.7,
    (2,): 0.6,
    (3,): None,
    (0, 1): 0.8,
    (1, 2): 0.7,
    (1, 3): 0.1,
    (0, 1, 2): 0.8,
    (0, 1, 3): 0.8,
    (0, 1, 2, 3): 0.75,
}
ALONE: list[Scores] = [{"f1": SCORES[(number,)]} for number in range(4)]


def test_greedy_choice_takes_what_helps_most_and_the_shortest_of_equal_ones():
    chosen, steps = choose_greedily(ALONE, table_of(SCORES), "f1")
    assert chosen == [1, 0]
    assert [step.added for step in steps] == [1, 0, 2, 3]
    assert [step.scores["f1"] for step in steps] == [0.7, 0.8, 0.8, 0.75]


def test_all_members_from_the_best_on():
    chosen, steps = take_all(ALONE, table_of({**SCORES, (1, 2): 0.9}), "f1")
    assert chosen == [step.added for step in steps] == [1, 2, 0, 3]
    assert [step.scores["f1"] for step in steps] == [0.7, 0.9, 0.8, 0.75]


def test_undefined_scores_are_chosen_last():
    undefined: list[Scores] = [{"f1": None}, {"f1": -0.5}]
    scores = table_of({(1,): -0.5, (0, 1): None})
    assert choose_greedily(undefined, scores, "f1")[0] == [1]


@pytest.mark.parametrize(
    ("average", "values", "probabilities"),
    [
        (None, "label_by_mean_probability", "mean_probabilities"),
        ("probabilities", "label_by_mean_probability", "mean_probabilities"),
        ("logits", "label_by_mean_logit", "probabilities_of_mean_logits"),
        ("votes", "label_by_vote", None),
    ],
)
def test_classes_equal_the_reference(average, values, probabilities):
    with np.load(GOLDEN) as golden:
        members = [{"logits": logits} for logits in golden["logits"]]
        for task in ("mnli", "race"):
            found = TASKS[task].decoder(average)(None, members)
            np.testing.assert_array_equal(found.values, golden[values])
            np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)
            if probabilities:
                np.testing.assert_allclose(found.probabilities, golden[probabilities], atol=1e-12)


def test_shares_of_votes():
    members = [{"logits": np.array([row], np.float32)} for row in ([9, 0, 0], [0, 1, 0], [0, 1, 0])]
    found = TASKS["mnli"].decoder("votes")(None, members)
    assert found.values == [1]
    np.testing.assert_allclose(found.probabilities, [[1 / 3, 2 / 3, 0]])


def test_values_are_averaged():
    members = [{"logits": np.array([[1.0], [2.0]])}, {"logits": np.array([[2.0], [5.0]])}]
    for average in (None, "values"):
        assert TASKS["sts-b"].decoder(average)(None, members).values == [1.5, 3.5]


def test_an_average_that_the_task_has_not():
    with pytest.raises(UserError, match=r"--average=votes .* --task=sts-b has; there are: values"):
        TASKS["sts-b"].decoder("votes")


def test_table():
    content = {
        "task": "mrpc",
        "key": "f1",
        "average": "votes",
        "choose": "greedy",
        "chosen_on": "dev",
        "members": [
            {"run": "a", "checkpoint": "last", "is_chosen": False, "metrics": {"f1": None}},
            {"run": "a", "checkpoint": "best", "is_chosen": True, "metrics": {"f1": 0.5}},
        ],
        "results": [
            {"split": "dev", "metrics": {"accuracy": 0.25, "f1": 0.75}, "notes": ["All are 1."]}
        ],
    }
    assert table_text(content).splitlines() == [
        "| split | score | ensemble |",
        "| --- | --- | ---: |",
        "| dev | accuracy | 25.0 |",
        "| dev | **f1** | 75.0 |",
        "",
        "| member | f1 on dev by itself | chosen |",
        "| --- | ---: | --- |",
        "| a (best) | 50.0 | yes |",
        "| a (last) | undefined | no |",
        "",
        "- mrpc; average: votes.",
        "- Members were chosen on dev, so that the score on it is too high for new data.",
        "- mrpc, dev: All are 1.",
    ]
    assert table_text({**content, "results": []}).startswith("| member |")
