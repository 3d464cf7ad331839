"""Ensembles of fine-tuned models, from the outputs that their runs have stored: nothing runs again.

The paper (section 4.9) averages "the model predictions", members being chosen by their dev scores.
Written into the folder of an ensemble:

    ensemble.json, ensemble.md          members and scores
    curve.csv, curve.png                the score of 1, 2, ... members
    predictions/<task>_<split>.*        answers, as those of a run

ensemble.json (version 1) is an object with "version"; "task" and "key"; "average"; "choose";
"chosen_on", the split, or null; "members", a list of objects with "run", "checkpoint",
"model_sha256", "is_chosen" and "metrics", the scores on that split, or null; and "results", a list
of objects with "split", "num_examples", "data_sha256", "metrics" and "notes", one for each split
whose right answers are known. Scores are those of results.json.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from albert_tf.errors import UserError
from albert_tf.finetuning.members import (
    Answered,
    Member,
    find_runs,
    find_splits,
    load_members,
    read_answered,
)
from albert_tf.finetuning.outcome import predictions_path
from albert_tf.finetuning.results import shown_score
from albert_tf.finetuning.spec import DataSource, FineTuning, Predictions
from albert_tf.metrics import Scores, is_better
from albert_tf.training.run_folder import RUN_FILE
from data_pipeline.files import atomic_files, storage

ENSEMBLE_FILE, TABLE_FILE = "ensemble.json", "ensemble.md"
CURVE_FILE, PICTURE_FILE = "curve.csv", "curve.png"
VERSION = 1
CHOICES = ("all", "greedy")


@dataclasses.dataclass(frozen=True)
class EnsembleSettings:
    """The settings of an ensemble.

    Attributes:
      checkpoints: of each run, "best" and "last".
      average: a name in `FineTuning.averages`; None: the task's own.
      choose: "all" members, or, "greedy", those that `choose_greedily` adds as long as the score on
        the dev set rises; it is then a score on the very set that they were chosen on.
      splits: that are answered; (): all that every member has stored outputs of.
    """

    checkpoints: Sequence[str] = ("best",)
    average: str | None = None
    choose: str = "all"
    splits: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Step:
    """A point of the curve: the score with one more member.

    Attributes:
      added: number of the member that is new.
      scores: of this member and those of the steps before.
    """

    added: int
    scores: Scores


@dataclasses.dataclass(frozen=True)
class Chosen:
    """The members that answer.

    Attributes:
      split: that they were compared on; None: there is none.
      order: their numbers.
      alone: the scores of every member by itself, of those not chosen, too.
      steps: of the curve.
    """

    split: str | None
    order: list[int]
    alone: list[Scores]
    steps: list[Step]


def run_ensemble(
    runs: Sequence[str],
    task: FineTuning,
    data: DataSource,
    output_dir: str,
    settings: EnsembleSettings | None = None,
) -> dict[str, Predictions]:
    """Answers of several models as one, scored and written.

    Args:
      runs: folders of runs or of series, or patterns of such.
      task: of all of them.
      data: that they have answered.
      output_dir: where everything is written.
      settings: None: the defaults.

    Returns:
      Split -> answers.

    Raises:
      UserError: outputs are missing, do not belong together or are of other data.
    """
    settings = settings or EnsembleSettings()
    if storage.exists(os.path.join(output_dir, RUN_FILE)):
        raise UserError(
            f"--output_dir={output_dir} holds a run, whose answers would be replaced. Name another "
            "folder."
        )
    task = dataclasses.replace(task, decode=task.decoder(settings.average))
    folders = find_runs(runs)
    splits = find_splits(task, data, folders, settings.checkpoints, settings.splits)
    members, hashes = load_members(task, folders, settings.checkpoints, splits)
    found, answered = read_answered(task, data, folders, hashes)
    chosen = _choose(task, members, answered, settings.choose)

    def answer(task: FineTuning, split: str) -> Predictions:
        outputs = [members[number].outputs[split] for number in chosen.order]
        return task.decode(answered[split].features, outputs)

    if chosen.split and task.of_model:  # SQuAD's threshold is found where answers are known.
        scores = task.scorer(answered[chosen.split].features, answer(task, chosen.split))
        task = task.of_model(task, {"metrics": scores})
    answers = {split: answer(task, split) for split in answered}
    content = {
        "version": VERSION,
        "task": task.name,
        "key": task.key,
        "average": settings.average or next(iter(task.averages), "its own"),
        "choose": settings.choose,
        "chosen_on": chosen.split,
        "members": [
            {
                "run": member.run,
                "checkpoint": member.checkpoint,
                "model_sha256": member.model_sha256,
                "is_chosen": number in chosen.order,
                "metrics": chosen.alone[number] if chosen.alone else None,
            }
            for number, member in enumerate(members)
        ],
        "results": [
            _result(task, split, rows, answers[split], hashes[split])
            for split, rows in answered.items()
            if rows.is_scored
        ],
    }
    storage.make_folder(output_dir)
    for split, predictions in answers.items():
        path = predictions_path(output_dir, task.name, split)
        for written in task.write(path, answered[split].features, found.labels, predictions):
            print(f"{len(answered[split].examples)} predictions: {written}")
    if chosen.split:
        _write_curve(output_dir, members, chosen, task)
    text = table_text(content)
    atomic_files.write_bytes(os.path.join(output_dir, TABLE_FILE), text.encode("utf-8"))
    atomic_files.write_json(os.path.join(output_dir, ENSEMBLE_FILE), content)
    print(text, end="")
    return answers


def _choose(
    task: FineTuning, members: Sequence[Member], answered: Mapping[str, Answered], choose: str
) -> Chosen:
    """The members that answer, and what was found on the way."""
    split = next((name for name in task.dev_splits if name in answered), None)
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
        return task.scorer(features, task.decode(features, [outputs[n] for n in numbers]))

    alone = [score([number]) for number in range(len(members))]
    order, steps = {"all": take_all, "greedy": choose_greedily}[choose](alone, score, task.key)
    return Chosen(split, order, alone, steps)


def take_all(
    alone: Sequence[Scores], score: Callable[[Sequence[int]], Scores], key: str
) -> tuple[list[int], list[Step]]:
    """All members, from the best by itself to the worst, and the scores on the way.

    Args:
      alone: the scores of each of M members by itself.
      score: numbers of members -> the scores of their ensemble.
      key: name of the score that is compared.

    Returns:
      Numbers of the chosen members; M steps.
    """
    order = sorted(range(len(alone)), key=lambda number: -_value(alone[number], key))
    return order, [Step(number, score(order[: n + 1])) for n, number in enumerate(order)]


def choose_greedily(
    alone: Sequence[Scores], score: Callable[[Sequence[int]], Scores], key: str
) -> tuple[list[int], list[Step]]:
    """Members that are added one by one, each the one that helps most; the shortest best part.

    Begins with the best by itself, and adds all, so that the curve shows where adding stops to
    help: scores 80, 82, 82, 81 with 1, 2, 3, 4 members -> the first two are chosen. The score of
    what is chosen is too high for new data, as it is the highest of many on the same examples.

    Args:
      alone: the scores of each of M members by itself.
      score: numbers of members -> the scores of their ensemble.
      key: name of the score that is compared.

    Returns:
      Numbers of the chosen members; M steps.
    """
    left = list(range(len(alone)))
    order: list[int] = []
    steps: list[Step] = []
    while left:
        tried = {number: score([*order, number]) if order else alone[number] for number in left}
        added = max(left, key=lambda number: _value(tried[number], key))
        left.remove(added)
        order.append(added)
        steps.append(Step(added, tried[added]))
    best = 0
    for number, step in enumerate(steps):
        if is_better(step.scores[key], steps[best].scores[key]):
            best = number
    return order[: best + 1], steps


def _value(scores: Scores, key: str) -> float:
    """A score to compare; an undefined one is below all."""
    value = scores[key]
    return value if is_better(value, None) and value is not None else float("-inf")


def _result(
    task: FineTuning, split: str, rows: Answered, predictions: Predictions, digest: str
) -> dict[str, Any]:
    """The scores on a split, see above."""
    return {
        "split": split,
        "num_examples": len(rows.examples),
        "data_sha256": digest,
        "metrics": task.scorer(rows.features, predictions),
        "notes": list(task.remarks(rows.features, predictions)),
    }


def _write_curve(
    output_dir: str, members: Sequence[Member], chosen: Chosen, task: FineTuning
) -> None:
    """Writes the score against the number of members, as CSV and as a picture."""
    # Here, because it is slow.
    from matplotlib.figure import Figure

    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["members", "added", f"{task.key}_alone", *task.metrics])
    for number, step in enumerate(chosen.steps, 1):
        scores = [step.scores.get(name) for name in task.metrics]
        table.writerow(
            [number, members[step.added].name, chosen.alone[step.added][task.key], *scores]
        )
    atomic_files.write_bytes(os.path.join(output_dir, CURVE_FILE), text.getvalue().encode("utf-8"))

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes, numbers = figure.subplots(), range(1, len(chosen.steps) + 1)
    together = [_value(step.scores, task.key) for step in chosen.steps]
    single = [_value(chosen.alone[step.added], task.key) for step in chosen.steps]
    axes.plot(numbers, together, "o-", label="ensemble", markersize=4)
    axes.plot(numbers, single, "x", label="the member that was added, by itself")
    axes.set_xlabel("members")
    axes.set_ylabel(f"{task.key} on {chosen.split}")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    atomic_files.write_bytes(os.path.join(output_dir, PICTURE_FILE), picture.getvalue())


def table_text(content: Mapping[str, Any]) -> str:
    """The Markdown of ensemble.md: the scores of each split, and the members, chosen ones first."""
    task, key = content["task"], content["key"]
    lines = ["| split | score | ensemble |", "| --- | --- | ---: |"]
    for result in content["results"]:
        for name, value in result["metrics"].items():
            shown = f"**{name}**" if name == key else name
            lines.append(f"| {result['split']} | {shown} | {shown_score(task, name, value)} |")
    if not content["results"]:
        lines = []
    split = content["chosen_on"]
    lines += ["", f"| member | {key} on {split} by itself | chosen |", "| --- | ---: | --- |"]
    for member in sorted(content["members"], key=lambda member: not member["is_chosen"]):
        value = "-"
        if member["metrics"] is not None:
            value = shown_score(task, key, member["metrics"][key])
        is_chosen = "yes" if member["is_chosen"] else "no"
        lines.append(f"| {member['run']} ({member['checkpoint']}) | {value} | {is_chosen} |")
    lines += ["", f"- {task}; average: {content['average']}."]
    if content["choose"] == "greedy":
        lines.append(
            f"- Members were chosen on {split}, so that the score on it is too high for new data."
        )
    for result in content["results"]:
        lines += [f"- {task}, {result['split']}: {note}" for note in result["notes"]]
    return "\n".join(lines).lstrip("\n") + "\n"
