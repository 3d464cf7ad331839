"""results.json and results.md: the scores of a fine-tuned model, and what they were made from.

results.json (version 1) is an object with "version" and "results", a list with one object for each
split that was scored; its fields are those of `Result`, in which "best" and "last" are `Scored`.
Scores are in [-1, 1], those of SQuAD in percent as its official script gives them. An undefined
score is null.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from albert_tf.errors import UserError
from albert_tf.finetuning.runs.published_scores import PublishedScore, published_score
from albert_tf.finetuning.tasks.table import TASKS
from data_pipeline.files import atomic_files

RESULTS_FILE, TABLE_FILE = "results.json", "results.md"
VERSION = 1
_SHA256 = re.compile(r"[0-9a-f]{64}")


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

    def __post_init__(self) -> None:
        _check(type(self.step) is int and self.step >= 0, "step", "an integer from 0", self.step)
        _check(isinstance(self.metrics, Mapping), "metrics", "an object", self.metrics)
        _check(len(self.metrics) > 0, "metrics", "at least one score", self.metrics)
        for name, value in self.metrics.items():
            _check(_is_score(value), f"metrics.{name}", "a finite number or null", value)
        if self.model_sha256 is not None:
            _check_hash("model_sha256", self.model_sha256)


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
        for name in ("task", "split", "key", "best_on"):
            value = getattr(self, name)
            _check(isinstance(value, str) and value, name, "a name", value)
        for name in ("seed", "preset"):
            kind, value = {"seed": int, "preset": str}[name], getattr(self, name)
            _check(value is None or type(value) is kind, name, f"{kind.__name__} or null", value)
        number = self.num_examples
        _check(type(number) is int and number > 0, "num_examples", "an integer from 1", number)
        for name, digest in self.data_sha256.items():
            _check_hash(f"data_sha256.{name}", digest)
        if self.init_sha256 is not None:
            _check_hash("init_sha256", self.init_sha256)
        is_text = isinstance(self.notes, Sequence) and not isinstance(self.notes, str)
        _check(is_text, "notes", "a list of sentences", self.notes)
        self._check_best()

    def _check_best(self) -> None:
        for name in ("best", "last"):
            scored = getattr(self, name)
            _check(self.key in scored.metrics, f"{name}.metrics", f"{self.key!r}", scored.metrics)
        _check(
            self.best.step <= self.last.step,
            "best.step",
            f"at most {self.last.step}",
            self.best.step,
        )

    @classmethod
    def from_json(cls, values: Any) -> Result:
        """The result of an object of results.json.

        Raises:
          UserError: a field is missing, unknown or impossible.
        """
        _check_fields(cls, values, "result")
        parts = {}
        for name in ("best", "last"):
            _check_fields(Scored, values[name], name)
            parts[name] = Scored(**values[name])
        _check(
            isinstance(values["data_sha256"], dict), "data_sha256", "an object", "something else"
        )
        notes = values["notes"]
        return cls(**{**values, **parts, "notes": tuple(notes) if type(notes) is list else notes})


def _is_score(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and math.isfinite(value))


def _check(is_right: Any, name: str, expected: str, received: Any) -> None:
    if not is_right:
        raise UserError(f"{name} should be {expected}; received {received!r}.")


def _check_hash(name: str, digest: Any) -> None:
    is_hash = isinstance(digest, str) and _SHA256.fullmatch(digest)
    _check(is_hash, name, "a SHA-256 of 64 hexadecimal digits", digest)


def _check_fields(kind: type, values: Any, name: str) -> None:
    _check(isinstance(values, dict), name, "an object", values)
    expected = {field.name for field in dataclasses.fields(kind)}
    if set(values) != expected:
        missing, unknown = sorted(expected - set(values)), sorted(set(values) - expected)
        raise UserError(
            f"{name} should have the fields {', '.join(sorted(expected))}; missing: "
            f"{', '.join(missing) or 'none'}, unknown: {', '.join(unknown) or 'none'}."
        )


def write_results(folder: str, results: Sequence[Result]) -> None:
    """Writes results.json and results.md, each atomically.

    Args:
      folder: where they are written.
      results: one for each split.
    """
    values = {"version": VERSION, "results": [dataclasses.asdict(result) for result in results]}
    table = results_table(results)
    atomic_files.write_bytes(os.path.join(folder, TABLE_FILE), table.encode("utf-8"))
    # Last: a run that has it is finished.
    atomic_files.write_json(os.path.join(folder, RESULTS_FILE), values)


def read_results(folder: str) -> list[Result]:
    """The results in a folder's results.json.

    Raises:
      UserError: naming the file and what is wrong in it.
    """
    path = os.path.join(folder, RESULTS_FILE)
    values = atomic_files.read_json(path)
    if not isinstance(values, dict) or values.get("version") != VERSION:
        found = values.get("version") if isinstance(values, dict) else None
        raise UserError(
            f"{path} should be an object of version {VERSION}; received version {found}. Evaluate "
            "the model again."
        )
    if not isinstance(values.get("results"), list):
        raise UserError(f'{path} should have a list "results". Evaluate the model again.')
    try:
        return [Result.from_json(result) for result in values["results"]]
    except UserError as error:
        raise UserError(f"{path}: {error} Evaluate the model again.") from None


_HEADER = "| task | split | score | best | last | published |"
_RULE = "| --- | --- | --- | ---: | ---: | ---: |"
# Scores that are means of squares, not shares.
_NOT_IN_PERCENT = ("mean_squared_error",)


def results_table(results: Sequence[Result]) -> str:
    """The Markdown of results.md: best and last in percent, beside the published score.

    Shares and correlations are shown in percent: accuracy 0.865 -> 86.5. The row of the score that
    decided which checkpoint is best has it in bold.
    """
    lines, sources, notes = [_HEADER, _RULE], [], []
    for result in results:
        notes += [f"{result.task}, {result.split}: {note}" for note in result.notes]
        for name in result.best.metrics:
            published = _published(result, name)
            if published and published.source not in sources:
                sources.append(published.source)
            lines.append(_row(result, name, published, sources))
    for number, source in enumerate(sources, 1):
        notes.append(f"[{number}] {source}")
    steps = [_steps(result) for result in results]
    paragraphs = ["\n".join(lines), *(f"- {line}" for line in [*steps, *notes])]
    return "\n\n".join([paragraphs[0], "\n".join(paragraphs[1:])]) + "\n"


def _steps(result: Result) -> str:
    """A sentence about both checkpoints of a result, and what they were scored on."""
    seed = "" if result.seed is None else f", seed {result.seed}"
    return (
        f"{result.task}, {result.split}: best after {result.best.step} updates, last after "
        f"{result.last.step}; {result.num_examples} examples{seed}."
    )


def _published(result: Result, metric: str) -> PublishedScore | None:
    """The published score; of the dev set, like nearly all of the table, so for no other split."""
    if not result.split.startswith("dev") or result.split == "dev_mismatched":
        return None
    return published_score(result.preset, result.task, metric)


def _row(
    result: Result, metric: str, published: PublishedScore | None, sources: Sequence[str]
) -> str:
    """One line of the table; sources: their numbers are those of the notes below it."""
    beside = "-"
    if published:
        beside = f"{published.percent:.1f} [{sources.index(published.source) + 1}]"
    name = f"**{metric}**" if metric == result.key else metric
    values = [
        shown_score(result.task, metric, scored.metrics.get(metric))
        for scored in (result.best, result.last)
    ]
    return f"| {' | '.join([result.task, result.split, name, *values, beside])} |"


def shown_score(task: str, metric: str, value: float | None) -> str:
    """A score as tables show it, in percent where it is a share: 0.865 -> 86.5."""
    if value is None:
        return "undefined"
    if metric in _NOT_IN_PERCENT:
        return f"{value:.4f}"
    is_percent = task in TASKS and TASKS[task].scores_are_percent
    return f"{value if is_percent else 100 * value:.1f}"
