"""Files about an ensemble: ensemble.json, ensemble.md, and the curve of its score."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
from collections.abc import Sequence

from albert_tf.finetuning.runs.ensemble_choice import Chosen, comparable
from albert_tf.finetuning.runs.members import Member
from albert_tf.finetuning.runs.results import markdown_table, shown_score
from albert_tf.finetuning.tasks.base import Task
from albert_tf.metrics import Scores
from data_pipeline.files import atomic_files, json_records

ENSEMBLE_FILE, TABLE_FILE = "ensemble.json", "ensemble.md"
CURVE_FILE, PICTURE_FILE = "curve.csv", "curve.png"
VERSION = 1


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


def write_report(output_dir: str, report: Report) -> None:
    """Writes and prints the table of an ensemble, and writes its JSON."""
    text = table_text(report)
    atomic_files.write_text(os.path.join(output_dir, TABLE_FILE), text)
    json_records.write(os.path.join(output_dir, ENSEMBLE_FILE), VERSION, report)
    print(text, end="")


def member_scores(members: Sequence[Member], chosen: Chosen) -> list[MemberScore]:
    """All members, with their scores by themselves."""
    alone: Sequence[Scores | None] = chosen.alone or [None] * len(members)
    return [
        MemberScore(
            member.run, member.checkpoint, member.model_sha256, number in chosen.order, scores
        )
        for number, (member, scores) in enumerate(zip(members, alone))
    ]


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
        [
            result.split,
            f"**{name}**" if name == key else name,
            shown_score(task, name, value),
        ]
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
