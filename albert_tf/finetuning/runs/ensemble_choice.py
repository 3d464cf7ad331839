"""The choice of an ensemble's members: all of them, or those that raise the dev score."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from albert_tf.errors import UserError
from albert_tf.finetuning.runs.members import Answered, Member
from albert_tf.finetuning.tasks.base import Task
from albert_tf.metrics import Scores, is_better


@dataclasses.dataclass(frozen=True)
class Step:
    """A point of the curve: the scores after adding one more member, number `added`."""

    added: int
    scores: Scores


@dataclasses.dataclass(frozen=True)
class Chosen:
    """The chosen members.

    Attributes:
      split: name of the split that they were compared on; None: no answers are known.
      order: their numbers, in the order in which they were added.
      alone: the scores of every member by itself, chosen or not.
      steps: points of the curve.
    """

    split: str | None
    order: list[int]
    alone: list[Scores]
    steps: list[Step]


def compared_split(task: Task, answered: Mapping[str, Answered]) -> str | None:
    """The split that members are compared on: the first whose answers are known."""
    return next((name for name in task.dev_splits if name in answered), None)


def choose_members(
    task: Task, members: Sequence[Member], answered: Mapping[str, Answered], choose: str
) -> Chosen:
    """The chosen members: "all" of them, or those of a "greedy" choice.

    Without a `compared_split` there are no scores.
    """
    split = compared_split(task, answered)
    if split is None:
        if choose == "greedy":
            raise UserError(
                "--choose=greedy needs outputs on a split whose answers are known: "
                f"{', '.join(task.dev_splits) or 'the task has none'}."
            )
        return Chosen(None, list(range(len(members))), [], [])
    features = answered[split].features
    outputs = [member.outputs[split] for member in members]

    def score(numbers: Sequence[int]) -> Scores:
        return task.score(features, task.answer(features, [outputs[n] for n in numbers]))

    alone = [score([number]) for number in range(len(members))]
    order, steps = {"all": take_all, "greedy": choose_greedily}[choose](alone, score, task.key)
    return Chosen(split, order, alone, steps)


def take_all(
    alone: Sequence[Scores], score: Callable[[Sequence[int]], Scores], key: str
) -> tuple[list[int], list[Step]]:
    """The numbers of all members, sorted by their own scores, best first, and the curve's points.

    `alone` are the scores of each member by itself, `score` computes the scores of an ensemble,
    and `key` is the name of the score to compare.
    """
    order = sorted(range(len(alone)), key=lambda number: -comparable(alone[number], key))
    return order, [Step(number, score(order[: n + 1])) for n, number in enumerate(order)]


def choose_greedily(
    alone: Sequence[Scores], score: Callable[[Sequence[int]], Scores], key: str
) -> tuple[list[int], list[Step]]:
    """Members added one by one, each time the one that helps most, up to the first best score.

    Starts with the best single member and adds all, so that the curve shows where adding stops
    helping: scores 80, 82, 82, 81 with 1, 2, 3, 4 members -> the first two are chosen.
    """
    left = list(range(len(alone)))
    order: list[int] = []
    steps: list[Step] = []
    while left:
        # M * (M + 1) / 2 ensembles are compared; the scores of those of one member are known.
        tried = {number: score([*order, number]) if order else alone[number] for number in left}
        added = max(left, key=lambda number: comparable(tried[number], key))
        left.remove(added)
        order.append(added)
        steps.append(Step(added, tried[added]))
    # The score of the choice is too high for new data: it is the highest of many on the same
    # examples. Of equal scores the first is chosen, which needs the fewest models.
    best = 0
    for number, step in enumerate(steps):
        if is_better(step.scores[key], steps[best].scores[key]):
            best = number
    return order[: best + 1], steps


def comparable(scores: Scores, key: str) -> float:
    """A score to compare; an undefined one is the lowest."""
    value = scores[key]
    return value if is_better(value, None) and value is not None else float("-inf")
