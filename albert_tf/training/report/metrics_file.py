"""metrics.csv: a row for each report of a run."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

import tensorflow as tf

from albert_tf import durable

METRICS_FILE = "metrics.csv"


class MetricsFile:
    """The metrics.csv of a run, with the columns step, split (train or eval) and every metric.

    Metrics that a split does not have are empty, those of steps that were all left out are nan.
    """

    def __init__(self, path: str, metrics: Sequence[str], start_step: int) -> None:
        """Args:
        path: of the file.
        metrics: names of the columns after `step` and `split`.
        start_step: the step that the run resumes at; later rows of an earlier start are dropped,
          and all of them by 0, where the run begins anew.
        """
        self._path = path
        self._columns = list(dict.fromkeys(["step", "split", *metrics]))
        rows = read_metrics(path) if start_step else []
        kept = [row for row in rows if int(row["step"]) <= start_step]
        text = io.StringIO()
        writer = csv.DictWriter(text, self._columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: row.get(name) for name in self._columns} for row in kept)
        durable.write_text(path, text.getvalue())

    def add(self, step: int, split: str, metrics: Mapping[str, float]) -> None:
        """Appends a row."""
        with tf.io.gfile.GFile(self._path, "a") as file:
            values = {name: f"{value:.7g}" for name, value in metrics.items()}
            csv.DictWriter(file, self._columns, lineterminator="\n").writerow(
                {"step": step, "split": split, **values}
            )

    def sync(self) -> None:
        """Returns when the file is safe on the disk."""
        durable.sync(self._path)


def read_metrics(path: str) -> list[dict[str, str]]:
    """The rows of a metrics.csv, each from column to text; empty when there is no file.

    A row that a power cut left half written is not among them.
    """
    if not tf.io.gfile.exists(path):
        return []
    with tf.io.gfile.GFile(path, "rb") as file:
        lines = file.read().decode("utf-8", "replace").split("\n")[:-1]
    rows = csv.DictReader(line for line in lines if "\0" not in line)
    return [row for row in rows if row.get("step", "").isdigit() and None not in row.values()]
