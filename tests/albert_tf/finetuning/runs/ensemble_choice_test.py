"""Which members of an ensemble answer."""

from types import SimpleNamespace

import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.runs.ensemble_choice import choose_greedily, choose_members, take_all
from albert_tf.finetuning.runs.members import Member
from albert_tf.metrics import Scores


def table_of(scores: dict[tuple[int, ...], float | None]):
    """Numbers of members -> their score, whatever their order."""
    return lambda numbers: {"f1": scores[tuple(sorted(numbers))]}


SCORES = {
    (0,): 0.5, (1,): 0.7, (2,): 0.6, (3,): None, (0, 1): 0.8, (1, 2): 0.7, (1, 3): 0.1,
    (0, 1, 2): 0.8, (0, 1, 3): 0.8, (0, 1, 2, 3): 0.75,
}  # fmt: skip
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


TASK = SimpleNamespace(
    dev_splits=("dev",),
    key="f1",
    answer=lambda features, outputs: [sum(row) for row in zip(*outputs)],
    score=lambda features, sums: {"f1": float(sums == features)},
)
MEMBERS = [Member(f"run{n}", "best", "", {"dev": output}) for n, output in enumerate([[1], [2]])]


def test_members_are_compared_by_what_the_task_answers_with_their_outputs():
    answered = {"test": None, "dev": SimpleNamespace(features=[3])}
    chosen = choose_members(TASK, MEMBERS, answered, "all")
    assert (chosen.split, chosen.order) == ("dev", [0, 1])
    assert chosen.alone == [{"f1": 0.0}, {"f1": 0.0}]
    assert [step.scores["f1"] for step in chosen.steps] == [0.0, 1.0]


def test_without_known_answers_all_members_answer_and_none_is_chosen():
    chosen = choose_members(TASK, MEMBERS, {"test": None}, "all")
    assert (chosen.split, chosen.order, chosen.steps) == (None, [0, 1], [])
    with pytest.raises(UserError, match="--choose=greedy needs outputs on a split .*: dev"):
        choose_members(TASK, MEMBERS, {"test": None}, "greedy")
