"""Files about an ensemble: ensemble.json, ensemble.md, and the curve of its score."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

from albert_tf.finetuning.runs.ensemble_choice import Chosen, comparable
from albert_tf.finetuning.runs.members import Answered, Member
from albert_tf.finetuning.runs.results import shown_score
from albert_tf.finetuning.tasks.base import Predictions, Task
from data_pipeline.files import atomic_files

ENSEMBLE_FILE, TABLE_FILE = "ensemble.json", "ensemble.md"
CURVE_FILE, PICTURE_FILE = "curve.csv", "curve.png"
VERSION = 1


def write_report(output_dir: str, content: Mapping[str, Any]) -> None:
    """Writes and prints the table of an ensemble, and writes its JSON."""
    text = table_text(content)
    atomic_files.write_bytes(os.path.join(output_dir, TABLE_FILE), text.encode("utf-8"))
    atomic_files.write_json(os.path.join(output_dir, ENSEMBLE_FILE), content)
    print(text, end="")


def described_members(members: Sequence[Member], chosen: Chosen) -> list[dict[str, Any]]:
    """The members in ensemble.json."""
    return [
        {
            "run": member.run,
            "checkpoint": member.checkpoint,
            "model_sha256": member.model_sha256,
            "is_chosen": number in chosen.order,
            "metrics": chosen.alone[number] if chosen.alone else None,
        }
        for number, member in enumerate(members)
    ]


def described_result(
    task: Task,
    split: str,
    rows: Answered,
    predictions: Predictions,
    labels: Sequence[str],
    digest: str,
) -> dict[str, Any]:
    """The scores on a split in ensemble.json.

    Args:
      task: with its metrics.
      split: name of the split.
      rows: the examples and features of the split.
      predictions: of the ensemble.
      labels: names of the classes.
      digest: SHA-256 of the examples.

    Returns:
      The entry of the split: its name and data, the metrics by name, and remarks.
    """
    return {
        "split": split,
        "num_examples": len(rows.examples),
        "data_sha256": digest,
        "metrics": task.score(rows.features, predictions),
        "notes": list(task.remarks(rows.features, predictions, labels)),
    }


def write_curve(output_dir: str, members: Sequence[Member], chosen: Chosen, task: Task) -> None:
    """Writes the score against the number of members, as CSV and as a picture.

    Args:
      output_dir: folder of the two files.
      members: all that were at hand.
      chosen: the steps in which they were added.
      task: with the names of its metrics.
    """
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
    together = [comparable(step.scores, task.key) for step in chosen.steps]
    single = [comparable(chosen.alone[step.added], task.key) for step in chosen.steps]
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
