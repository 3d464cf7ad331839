"""metrics.csv: a row for each report of a run; and the picture of its curves."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Mapping, Sequence

import tensorflow as tf

from data_pipeline.files import atomic_files, storage

METRICS_FILE = "metrics.csv"
_HASH = ".sha256"  # Suffix of a file with the hash of the first bytes, and their number.
SPLITS = ("train", "eval")


class MetricsFile:
    """The metrics.csv of a run, with the columns step, split (train or eval) and every metric.

    Metrics that a split does not have are empty; if all steps were skipped, they are nan.
    """

    def __init__(self, path: str, metrics: Sequence[str], start_step: int) -> None:
        """metrics: names of the columns after `step` and `split`. start_step: the step that the run
        resumes at, 0 if it begins anew.
        """
        self._path = path
        self._columns = list(dict.fromkeys(["step", "split", *metrics]))
        if start_step and not _is_as_written(path):
            print(
                f"{path} is not as it was written: figures of earlier steps are missing or "
                "changed, and unreadable rows are left out. The weights are not affected.",
                flush=True,
            )
        rows = read_metrics(path) if start_step else []
        # Later rows, of an earlier start, will be written again with the same figures.
        kept = [row for row in rows if int(row["step"]) <= start_step]
        text = io.StringIO()
        writer = csv.DictWriter(text, self._columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: row.get(name) for name in self._columns} for row in kept)
        # Remove the hash before changing the file: after a kill in between there is no hash, so the
        # file does not count as changed.
        storage.remove(path + _HASH)
        atomic_files.write_text(path, text.getvalue())
        self.sync()

    def add(self, step: int, split: str, metrics: Mapping[str, float]) -> None:
        """Appends a row."""
        with tf.io.gfile.GFile(self._path, "a") as file:
            values = {name: f"{value:.7g}" for name, value in metrics.items()}
            csv.DictWriter(file, self._columns, lineterminator="\n").writerow(
                {"step": step, "split": split, **values}
            )

    def sync(self) -> None:
        """Returns when the file is on disk, with the hash of its content next to it."""
        atomic_files.sync(self._path)
        content = storage.read_bytes(self._path)
        atomic_files.write_text(self._path + _HASH, f"{_digest(content)} {len(content)}\n")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _is_as_written(path: str) -> bool:
    """Whether a metrics.csv begins with the bytes of the last `sync`; rows may follow them. True if
    there is no hash, as in runs of earlier versions.
    """
    if not tf.io.gfile.exists(path + _HASH):
        return True
    digest, _, size = storage.read_bytes(path + _HASH).decode("utf-8", "replace").partition(" ")
    length = int(size) if size.strip().isdecimal() else 0
    return tf.io.gfile.exists(path) and _digest(storage.read_bytes(path)[:length]) == digest


def read_metrics(path: str) -> list[dict[str, str]]:
    """The rows of a metrics.csv, each from column to text; empty when there is no file.

    Rows that are damaged, or half written because of a power cut, are left out.
    """
    if not tf.io.gfile.exists(path):
        return []
    # Not with `csv`: a byte damaged into a quote would swallow the rows after it.
    lines = storage.read_bytes(path).decode("utf-8", "replace").split("\n")[:-1]
    header, *rows = (line.split(",") for line in lines or [""])
    found = (dict(zip(header, row)) for row in rows if len(row) == len(header))
    return [row for row in found if _is_row(row)]


def _is_row(row: Mapping[str, str]) -> bool:
    """Whether a row has a step, a split and numbers: {"step": "1", "split": "eval", "loss": ""}."""
    if not row.get("step", "").isdecimal() or row.get("split") not in SPLITS:
        return False
    # Figures that a split does not have are empty.
    figures = [text for name, text in row.items() if text and name not in ("step", "split")]
    try:
        return all(math.isfinite(float(text)) or text in ("nan", "inf", "-inf") for text in figures)
    except ValueError:
        return False


def plot_curves(metrics_path: str, png_path: str) -> None:
    """Writes a PNG with losses (left) and accuracies (right) over steps; held-out figures are
    dotted.
    """
    # Imported here because it is slow, and only the end of a run needs it.
    from matplotlib.figure import Figure

    rows = read_metrics(metrics_path)
    figure = Figure(figsize=(11, 4), layout="constrained")
    for axes, kind in zip(figure.subplots(1, 2), ("loss", "accuracy")):
        for name in [name for name in (rows[0] if rows else ()) if name.endswith(kind)]:
            for split, style in (("train", "-"), ("eval", "o:")):
                points = [
                    (int(row["step"]), float(row[name]))
                    for row in rows
                    if row["split"] == split and row[name]
                ]
                if points:
                    axes.plot(
                        *zip(*points), style, label=f"{name} ({split})", linewidth=1.2, markersize=4
                    )
        axes.set_xlabel("step")
        axes.set_ylabel(f"{kind} (nats)" if kind == "loss" else kind)
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize=8)
    with atomic_files.writing(png_path) as file:
        figure.savefig(file, format="png", dpi=120)
