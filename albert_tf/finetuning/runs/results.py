"""results.json and results.md: the scores of a fine-tuned model, and what they were made from.

results.json (version 1) is an object with "version" and "results", a list with one object for each
split that was scored; it has the fields of `Result`, in which "best" and "last" are `Scored`.
Scores are in [-1, 1], SQuAD's in percent as its official script gives them. An undefined
score is null.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence

from albert_tf.errors import UserError
from albert_tf.finetuning.runs.published_scores import PublishedScore, published_score
from albert_tf.finetuning.tasks.table import TASKS
from data_pipeline.files import atomic_files, json_records

RESULTS_FILE, TABLE_FILE = "results.json", "results.md"
VERSION = 1


@dataclasses.dataclass(frozen=True)
class Scored:
    """The scores of one checkpoint.

    Attributes:
      step: updates before it.
      metrics: scores by scikit-learn's names; None: undefined.
      model_sha256: hash of its weights' file; None: the file is not kept.
    """

    step: int
    metrics: Mapping[str, float | None]
    model_sha256: str | None = None


@dataclasses.dataclass(frozen=True)
class Result:
    """The scores of a run on one split of a task's data.

    Attributes:
      task: such as mrpc.
      split: such as dev; dev_matched and dev_mismatched for MNLI.
      num_examples: N, those that were scored, each counted once.
      key: name of the score that decides which checkpoint is best.
      best_on: the split that decides it: dev; dev_matched for both splits of MNLI.
      best: the checkpoint with the highest key on that split in training; the first of equal ones.
      last: the checkpoint after the last step.
      seed: of the run; None: the model was not trained by this run.
      preset: such as albert-base-v2; None: the model is of no preset.
      data_sha256: hashes of the examples that were trained on and scored, by split.
      init_sha256: hash of the weights that training began with; None: they were random.
      notes: sentences about the scores, such as that they are undefined.
    """

    task: str
    split: str
    num_examples: int
    key: str
    best_on: str
    best: Scored
    last: Scored
    seed: int | None
    preset: str | None
    data_sha256: Mapping[str, str]
    init_sha256: str | None = None
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name, scored in (("best", self.best), ("last", self.last)):
            if self.key not in scored.metrics:
                raise UserError(f"{name} should have a score {self.key!r}: {dict(scored.metrics)}.")


@dataclasses.dataclass(frozen=True)
class _Results:
    """The content of results.json."""

    results: Sequence[Result]


def write_results(folder: str, results: Sequence[Result]) -> None:
    """Writes results.json and results.md, each atomically."""
    table = results_table(results)
    atomic_files.write_text(os.path.join(folder, TABLE_FILE), table)
    # Written last: a run that has it is finished.
    json_records.write(os.path.join(folder, RESULTS_FILE), VERSION, _Results(results))


def read_results(folder: str) -> list[Result]:
    """The results in a folder's results.json."""
    path = os.path.join(folder, RESULTS_FILE)
    return list(
        json_records.read(path, VERSION, _Results, "Give the training command again.").results
    )


_COLUMNS = ("task", "split", "score", "best", "last", "published")
# Scores that are mean squares, not shares.
_NOT_IN_PERCENT = ("mean_squared_error",)


def results_table(results: Sequence[Result]) -> str:
    """The Markdown of results.md: best and last in percent, next to the published score.

    Shares and correlations are shown in percent: accuracy 0.865 -> 86.5. The name of the score
    that decided which checkpoint is best is in bold.
    """
    rows: list[list[str]] = []
    notes: list[str] = []
    numbers: dict[str, int] = {}  # Publication -> number of the note below the table.
    for result in results:
        notes += [f"{result.task}, {result.split}: {note}" for note in result.notes]
        for name, best in result.best.metrics.items():
            scores = (best, result.last.metrics.get(name))
            compared = "-"
            if published := _published(result, name):
                number = numbers.setdefault(published.publication, len(numbers) + 1)
                compared = f"{published.percent:.1f} [{number}]"
            shown = [shown_score(result.task, name, score) for score in scores]
            bold = f"**{name}**" if name == result.key else name
            rows.append([result.task, result.split, bold, *shown, compared])
    notes += [f"[{number}] {where}" for where, number in numbers.items()]
    table = markdown_table("lllrrr", _COLUMNS, rows)
    return (
        "\n".join([*table, "", *(f"- {line}" for line in [*map(_steps, results), *notes])]) + "\n"
    )


def markdown_table(
    alignment: str, columns: Sequence[str], rows: Iterable[Sequence[str]]
) -> list[str]:
    """The lines of a table; "lr" aligns its first column left and its second one right."""
    rule = ["---:" if each == "r" else "---" for each in alignment]
    return [f"| {' | '.join(cells)} |" for cells in (columns, rule, *rows)]


def _steps(result: Result) -> str:
    """A sentence about both checkpoints of a result, and what they were scored on."""
    seed = "" if result.seed is None else f", seed {result.seed}"
    return (
        f"{result.task}, {result.split}: best after {result.best.step} updates, last after "
        f"{result.last.step}; {result.num_examples} examples{seed}."
    )


def _published(result: Result, metric: str) -> PublishedScore | None:
    """The published score to compare with; None for splits other than dev sets, since nearly all
    published scores are of dev sets.
    """
    # The README has one number for MNLI; only the task's first dev set is compared with it.
    if not result.split.startswith("dev") or result.split == "dev_mismatched":
        return None
    return published_score(result.preset, result.task, metric)


def shown_score(task: str, metric: str, value: float | None) -> str:
    """A score as tables show it, in percent where it is a share: 0.865 -> 86.5."""
    if value is None:
        return "undefined"
    if metric in _NOT_IN_PERCENT:
        return f"{value:.4f}"
    is_percent = task in TASKS and TASKS[task].scores_are_percent
    return f"{value if is_percent else 100 * value:.1f}"
