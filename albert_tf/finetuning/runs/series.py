"""Several runs of one task, with other seeds or other settings, and the table of their scores.

    runs/rte/seed-3                        a run like any other
    runs/rte/learning_rate=1e-05/seed-3    one of a search
    runs/rte/seeds.json, seeds.md          the table, best first

seeds.json (version 1) has the fields of `Series`, and is written after each run.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import scipy.stats
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.finetuning.runs.attempts import delete, put_aside
from albert_tf.finetuning.runs.results import Result, markdown_table, shown_score
from albert_tf.training.hooks.bad_steps import Diverged
from albert_tf.training.run_folder import RUN_FILE
from albert_tf.training.strategy import is_chief
from data_pipeline.files import atomic_files, json_records, storage

SERIES_FILE, TABLE_FILE = "seeds.json", "seeds.md"
VERSION = 1
_CONFIDENCE = 0.95


class Variant(NamedTuple):
    """A run of a series: the searched settings by name, and the seed."""

    values: Mapping[str, int | float]
    seed: int

    @property
    def folder(self) -> str:
        """Its folder in that of the series: learning_rate=1e-05_train_batch_size=16/seed-3."""
        # Values are written by repr, so that different values never share a folder.
        point = "_".join(f"{name}={value!r}" for name, value in self.values.items())
        return os.path.join(point, f"seed-{self.seed}")


def variants(
    seed: int, num_seeds: int, search: Mapping[str, Sequence[int | float]]
) -> list[Variant]:
    """Every combination of the values to try, with every seed: 7, 8, 9 are 3 seeds from 7 on."""
    points = itertools.product(*search.values())
    return [
        Variant(dict(zip(search, point)), seed + number)
        for point in points
        for number in range(num_seeds)
    ]


@dataclasses.dataclass(frozen=True)
class RunScore:
    """The score of a run.

    Attributes:
      folder: of the run, relative to the folder of the series.
      values: the searched settings by name.
      seed: of the run; of the last attempt where earlier ones learned nothing.
      best, last: the key score of both checkpoints; None: undefined.
      step: updates before the best one.
      attempts: 1 plus the number of runs that were put aside.
      notes: sentences about the scores.
    """

    folder: str
    values: Mapping[str, float]
    seed: int | None
    best: float | None
    last: float | None
    step: int
    attempts: int
    notes: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Summary:
    """Statistics of several runs' best checkpoints; None: undefined, as the deviation of one is.

    Attributes:
      values: the settings that the runs have in common, by name.
      runs: their number.
      undefined: the number of runs without a score, which are left out of what follows.
      median, best, mean: of the scores.
      deviation: their sample standard deviation.
      low, high: ends of the 95 % interval of the mean, by Student's t.
    """

    values: Mapping[str, float]
    runs: int
    undefined: int
    median: float | None = None
    best: float | None = None
    mean: float | None = None
    deviation: float | None = None
    low: float | None = None
    high: float | None = None


@dataclasses.dataclass(frozen=True)
class Series:
    """The runs of a series and their scores.

    Attributes:
      task, split, key: the score that is compared.
      planned: the number of runs in all.
      runs: the finished ones, best first.
      settings: a summary of the runs of each combination of settings, best first.
      best_run: folder of the best run.
    """

    task: str
    split: str
    key: str
    planned: int
    runs: Sequence[RunScore]
    settings: Sequence[Summary]
    best_run: str


def summarize(values: Mapping[str, float], scores: Sequence[float | None]) -> Summary:
    """Median, best, deviation and interval of scores: 0.7, 0.8, 0.9 -> 0.8, 0.9, 0.1, 0.55-1.05."""
    # A run without a score is counted, but left out of the statistics.
    defined = [score for score in scores if score is not None]
    number = len(defined)
    head = (values, len(scores), len(scores) - number)
    if not defined:
        return Summary(*head)
    mean = statistics.fmean(defined)
    center = (statistics.median(defined), max(defined), mean)
    if number == 1:  # One run has no deviation.
        return Summary(*head, *center)
    deviation = statistics.stdev(defined)
    half = float(scipy.stats.t.ppf((1 + _CONFIDENCE) / 2, number - 1)) * deviation / number**0.5
    return Summary(*head, *center, deviation, mean - half, mean + half)


def run_series(
    output_dir: str,
    planned: Sequence[Variant],
    run: Callable[[str, Variant], list[Result]],
    writes: bool = True,
) -> Series:
    """Executes runs one after the other, and writes their table.

    Args:
      run: (folder, variant) -> results of a run, which may already be finished.
      writes: whether this process writes the table; only one of several workers does.
    """
    if storage.exists(os.path.join(output_dir, RUN_FILE)):
        raise UserError(
            f"--output_dir={output_dir} holds a single run, and this command makes several. "
            "Name another folder."
        )
    finished: list[tuple[Variant, Result]] = []
    table: Series | None = None
    # The table covers the runs that this command plans. A command with more seeds makes it anew:
    # finished runs return their results at once.
    for number, variant in enumerate(planned, 1):
        print(f"\nRun {number} of {len(planned)}: {variant.folder}", flush=True)
        try:
            result = run(os.path.join(output_dir, variant.folder), variant)[0]
        except Diverged as error:
            # A diverged run does not abort the search.
            print(f"Left out: {variant.folder}, whose {error}", flush=True)
            continue
        if finished and finished[0][1].data_sha256 != result.data_sha256:
            raise UserError(
                f"{os.path.join(output_dir, variant.folder)} was made from other data than "
                f"{finished[0][0].folder}; their scores cannot be compared. Pass --overwrite to "
                "make all runs anew."
            )
        finished.append((variant, result))
        # Written after each run: a series may take days, and may be stopped early.
        table = _table(output_dir, finished, len(planned))
        if writes:
            json_records.write(os.path.join(output_dir, SERIES_FILE), VERSION, table)
            atomic_files.write_text(os.path.join(output_dir, TABLE_FILE), table_text(table))
    if table is None:
        raise UserError(
            f"--output_dir={output_dir}: every run has diverged. Lower --learning_rate, or "
            "lengthen the warm-up."
        )
    if writes:
        print(f"\n{table_text(table)}\nTable: {os.path.join(output_dir, TABLE_FILE)}")
    return table


def _table(output_dir: str, finished: Sequence[tuple[Variant, Result]], num_planned: int) -> Series:
    """The scores of finished runs, best first."""
    first, scores = finished[0][1], []
    for variant, result in finished:
        best, last = (scored.metrics[result.key] for scored in (result.best, result.last))
        # The seed is that of the last attempt; `variant` has that of the first.
        attempts = 1 + len(put_aside(os.path.join(output_dir, variant.folder)))
        scores.append(
            RunScore(
                *(variant.folder, variant.values, result.seed, best, last),
                *(result.best.step, attempts, result.notes),
            )
        )
    settings = [
        summarize(dict(point), [score.best for score in scores if score.values == dict(point)])
        for point in dict.fromkeys(tuple(score.values.items()) for score in scores)
    ]
    runs = sorted(scores, key=lambda score: _descending(score.best))
    settings.sort(key=lambda point: _descending(point.median))
    split = (first.task, first.split, first.key)
    return Series(*split, num_planned, runs, settings, best_run=runs[0].folder)


def _descending(score: float | None) -> float:
    """A key to sort by: the highest score first, undefined ones last."""
    return float("inf") if score is None else -score


def table_text(table: Series) -> str:
    """The Markdown of seeds.md: a line for each combination of settings, a line for each run."""
    names = list(table.runs[0].values)

    def shown(score: float | None) -> str:
        return "-" if score is None else shown_score(table.task, table.key, score)

    points = []
    for point in table.settings:
        ends = [point.low, point.high]
        interval = "-" if None in ends else " to ".join(map(shown, ends))
        cells = map(shown, (point.median, point.best, point.mean, point.deviation))
        values = [f"{point.values[name]:g}" for name in names]
        points.append([*values, str(point.runs), *cells, interval])
    runs = [
        [
            run.folder,
            shown(run.best),
            shown(run.last),
            *map(str, (run.step, run.seed, run.attempts)),
        ]
        for run in table.runs
    ]
    columns = [*names, "runs", "median", "best", "mean", "standard deviation", "95 % interval"]
    lines = [
        *markdown_table("l" * len(names) + "rrrrrr", columns, points),
        "",
        *markdown_table("lrrrrr", ["run", "best", "last", "updates", "seed", "attempts"], runs),
        "",
    ]
    return "\n".join([*lines, *_remarks(table)]) + "\n"


def _remarks(table: Series) -> list[str]:
    """Sentences below the table."""
    lines = [
        f"- {table.task}, {table.split}: {table.key} of the best checkpoint; "
        f"{len(table.runs)} of {table.planned} runs.",
        "- The interval is for the mean over seeds, by Student's t. Checkpoints and the best run "
        "were chosen on this same split, so the best score is too optimistic for new data.",
    ]
    if any(run.attempts > 1 for run in table.runs):
        lines.append(
            "- Runs that learned nothing were put aside and repeated with another seed; these "
            "figures do not include them."
        )
    return lines + [f"- {run.folder}: {note}" for run in table.runs for note in run.notes]


def read_series(folder: str) -> Series | None:
    """The series in a folder; None: the folder holds none."""
    path = os.path.join(folder, SERIES_FILE)
    if not storage.exists(path):
        return None
    return json_records.read(path, VERSION, Series, "Run the series again.")


def run_folders(folder: str) -> list[str]:
    """The folders of the runs of a series, best first; for any other folder, the folder itself."""
    table = read_series(folder)
    return [os.path.join(folder, run.folder) for run in table.runs] if table else [folder]


def best_run(folder: str) -> str:
    """The folder of the best run of a series; for any other folder, the folder itself."""
    return run_folders(folder)[0]


def delete_series(
    output_dir: str, planned: Sequence[Variant], strategy: tf.distribute.Strategy
) -> None:
    """Deletes all runs in a folder, a single one or a series with its table, and runs of `planned`
    that were started but are not in the table.
    """
    folders = [os.path.join(output_dir, variant.folder) for variant in planned]
    for folder in dict.fromkeys([*run_folders(output_dir), *folders]):
        delete(folder, strategy)
    if is_chief(strategy):
        for name in (SERIES_FILE, TABLE_FILE):
            storage.remove(os.path.join(output_dir, name))
