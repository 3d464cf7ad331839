"""Ensembles of fine-tuned models, from the outputs that their runs have stored; no model is run.

The paper (section 4.9) averages "the model predictions" of members chosen by their dev scores.
Files in the folder of an ensemble:

    ensemble.json, ensemble.md          members and scores
    curve.csv, curve.png                the score of 1, 2, ... members
    predictions/<task>_<split>.*        answers, as a run writes them

ensemble.json (version 1) has the fields of `Report`.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import os
from collections.abc import Callable, Mapping, Sequence

from albert_tf.errors import UserError
from albert_tf.finetuning.runs.members import (
    CHECKPOINTS,
    Answered,
    Member,
    find_runs,
    find_splits,
    load_members,
    read_answered,
)
from albert_tf.finetuning.runs.results import markdown_table, shown_score
from albert_tf.finetuning.runs.run_files import predictions_path
from albert_tf.finetuning.tasks.base import Predictions, Task, TaskData
from albert_tf.metrics import Scores, is_better
from albert_tf.training.run_folder import RUN_FILE
from data_pipeline.files import atomic_files, json_records, storage
from data_pipeline.settings import Settings, setting

ENSEMBLE_FILE, TABLE_FILE = "ensemble.json", "ensemble.md"
CURVE_FILE, PICTURE_FILE = "curve.csv", "curve.png"
VERSION = 1


@dataclasses.dataclass(frozen=True)
class EnsembleSettings(Settings):
    """The settings of an ensemble."""

    checkpoints: tuple[str, ...] = setting(
        ("best",), "Models of each run to average: best, last, or both.", one_of=CHECKPOINTS
    )
    average: str | None = setting(
        None,
        "Outputs to average for classes and tags: probabilities (the default), logits or votes; "
        "other tasks have their own, such as values for regressions.",
    )
    choose: str = setting(
        "all",
        "Choice of members. all: every model. greedy: models are added one by one, each time the "
        "one that raises the dev score most; that score is then too optimistic, because the "
        "members were chosen on the same examples.",
        one_of=("all", "greedy"),
    )
    splits: tuple[str, ...] = ()  # Splits to answer; (): all with outputs of every member.


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


@dataclasses.dataclass(frozen=True)
class MemberScore:
    """A member of an ensemble; see `Member`.

    Attributes:
      is_chosen: whether the ensemble uses it.
      metrics: its scores by itself; None: no split has known answers.
    """

    run: str
    checkpoint: str
    model_sha256: str
    is_chosen: bool
    metrics: Scores | None


@dataclasses.dataclass(frozen=True)
class SplitScore:
    """The scores of an ensemble on a split, like those of a run in results.json."""

    split: str
    num_examples: int
    data_sha256: str
    metrics: Scores
    notes: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Report:
    """The content of ensemble.json.

    Attributes:
      key: name of the score that members are compared by.
      average: how their outputs were averaged.
      choose: how they were chosen.
      chosen_on: the split that they were compared on; None: no answers are known.
      members: all that were available, chosen or not.
      results: one for each split whose right answers are known.
    """

    task: str
    key: str
    average: str
    choose: str
    chosen_on: str | None
    members: Sequence[MemberScore]
    results: Sequence[SplitScore]


def run_ensemble(
    runs: Sequence[str],
    task: Task,
    data: TaskData,
    output_dir: str,
    settings: EnsembleSettings | None = None,
) -> dict[str, Predictions]:
    """Joint answers of several models, scored and written into `output_dir`; split -> answers.

    `runs` are folders of runs or of series, or patterns that match them.
    """
    settings = settings or EnsembleSettings()
    if storage.exists(os.path.join(output_dir, RUN_FILE)):
        raise UserError(
            f"--output_dir={output_dir} holds a run, whose answers would be replaced. Name another "
            "folder."
        )
    task = task.averaging(settings.average)  # Refuses an unknown average before any reading.
    folders = find_runs(runs)
    splits = find_splits(task, data, folders, settings.checkpoints, settings.splits)
    members, hashes = load_members(task, folders, settings.checkpoints, splits)
    model, answered = read_answered(task, data, folders, hashes)
    task = task.as_in(model.metadata)
    if compared := compared_split(task, answered):
        task = task.scored_on(answered[compared].features)
    chosen = choose_members(task, members, answered, settings.choose)

    def answer(task: Task, split: str) -> Predictions:
        outputs = [members[number].outputs[split] for number in chosen.order]
        return task.answer(answered[split].features, outputs)

    # SQuAD's threshold is chosen on a split with known answers, and then used on every split. The
    # members' own thresholds do not suit the ensemble, whose odds are means.
    if not task.is_settled:
        if not chosen.split:
            raise UserError(
                f"--task={task.name}: no split has known answers, on which to choose the threshold "
                "of null odds. Add dev to --splits, or give --null_score_diff_threshold."
            )
        scores = task.score(answered[chosen.split].features, answer(task, chosen.split))
        task = task.settled(scores)
    answers = {split: answer(task, split) for split in answered}
    storage.make_folder(output_dir)  # Nothing is written before every split is answered.
    for split, predictions in answers.items():
        path = predictions_path(output_dir, task.name, split)
        for written in task.write(path, answered[split].features, model.labels, predictions):
            print(f"{len(answered[split].examples)} predictions: {written}")
    if chosen.split:
        write_curve(output_dir, members, chosen, task)
    results = []
    for split, rows in answered.items():
        if rows.is_scored:
            scores = task.score(rows.features, answers[split])
            notes = task.remarks(rows.features, answers[split], model.labels)
            results.append(SplitScore(split, len(rows.examples), hashes[split], scores, notes))
    alone: Sequence[Scores | None] = chosen.alone or [None] * len(members)
    found = [
        MemberScore(each.run, each.checkpoint, each.model_sha256, number in chosen.order, scores)
        for number, (each, scores) in enumerate(zip(members, alone))
    ]
    average = settings.average or next(iter(task.averages), "the task's own")
    how = (average, settings.choose, chosen.split)
    write_report(output_dir, Report(task.name, task.key, *how, found, results))
    return answers


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


def write_report(output_dir: str, report: Report) -> None:
    """Writes and prints the table of an ensemble, and writes its JSON."""
    text = table_text(report)
    atomic_files.write_text(os.path.join(output_dir, TABLE_FILE), text)
    json_records.write(os.path.join(output_dir, ENSEMBLE_FILE), VERSION, report)
    print(text, end="")


def write_curve(output_dir: str, members: Sequence[Member], chosen: Chosen, task: Task) -> None:
    """Writes the score against the number of members, as CSV and as a picture."""
    # Imported here because the import is slow.
    from matplotlib.figure import Figure

    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["members", "added", f"{task.key}_alone", *task.metrics])
    for number, step in enumerate(chosen.steps, 1):
        scores = [step.scores.get(name) for name in task.metrics]
        table.writerow(
            [number, members[step.added].name, chosen.alone[step.added][task.key], *scores]
        )
    atomic_files.write_text(os.path.join(output_dir, CURVE_FILE), text.getvalue())

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes, numbers = figure.subplots(), range(1, len(chosen.steps) + 1)
    together = [comparable(step.scores, task.key) for step in chosen.steps]
    single = [comparable(chosen.alone[step.added], task.key) for step in chosen.steps]
    axes.plot(numbers, together, "o-", label="ensemble", markersize=4)
    axes.plot(numbers, single, "x", label="the member that was added, by itself")
    axes.set_xlabel("members")
    axes.set_ylabel(f"{task.key} on {chosen.split}")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    with atomic_files.writing(os.path.join(output_dir, PICTURE_FILE)) as file:
        figure.savefig(file, format="png", dpi=120)


def table_text(report: Report) -> str:
    """The Markdown of ensemble.md: the scores of each split, and the members, chosen ones first."""
    task, key, split = report.task, report.key, report.chosen_on
    scores = [
        [result.split, f"**{name}**" if name == key else name, shown_score(task, name, value)]
        for result in report.results
        for name, value in result.metrics.items()
    ]
    members = [
        [
            f"{member.run} ({member.checkpoint})",
            *([] if member.metrics is None else [shown_score(task, key, member.metrics[key])]),
            "yes" if member.is_chosen else "no",
        ]
        for member in sorted(report.members, key=lambda member: not member.is_chosen)
    ]
    lines = markdown_table("llr", ["split", "score", "ensemble"], scores) if scores else []
    if split is None:  # No answers are known.
        lines += ["", *markdown_table("ll", ["member", "chosen"], members)]
    else:
        columns = ["member", f"{key} on {split} by itself", "chosen"]
        lines += ["", *markdown_table("lrl", columns, members)]
    lines += ["", f"- {task}; average: {report.average}."]
    if report.choose == "greedy":
        lines.append(
            f"- Members were chosen on {split}, so the score on it is too optimistic for new data."
        )
    for result in report.results:
        lines += [f"- {task}, {result.split}: {note}" for note in result.notes]
    return "\n".join(lines).lstrip("\n") + "\n"
