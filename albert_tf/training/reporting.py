"""What the user sees of a run: start-up card, progress, metrics.csv, TensorBoard and curves."""

from __future__ import annotations

import csv
import os
import sys
import time

import tensorflow as tf
from tqdm import tqdm

METRICS_FILE = "metrics.csv"
_LINE_SECONDS = 15.0  # Without a terminal, a line of progress is printed this often.


class Reporter:
    """Shows and stores the figures of a training run.

    metrics.csv has a row for each report: step, split (train or eval) and every metric; figures
    that a split does not have are empty. Rows after the step that a run resumes at are dropped.
    """

    def __init__(
        self,
        run_dir: str,
        metrics: tuple[str, ...],
        num_train_steps: int,
        start_step: int,
        tokens_per_step: int,
    ) -> None:
        """Args: tokens_per_step: of the global batch, padding included."""
        self._fields = [
            "step",
            "split",
            "loss",
            *metrics,
            "learning_rate",
            "gradient_norm",
            "tokens_per_second",
        ]
        self._path = os.path.join(run_dir, METRICS_FILE)
        self._tokens_per_step = tokens_per_step
        self._last_step = start_step
        self._num_train_steps = num_train_steps
        self._started = self._last_time = self._last_line = time.monotonic()
        self._writers = {
            split: tf.summary.create_file_writer(os.path.join(run_dir, "tensorboard", split))
            for split in ("train", "eval")
        }
        self._write_rows(row for row in read_metrics(self._path) if int(row["step"]) <= start_step)
        self._bar = tqdm(
            total=num_train_steps,
            initial=start_step,
            unit="step",
            disable=not sys.stderr.isatty(),
            dynamic_ncols=True,
        )

    def train(self, step: int, metrics: dict[str, float]) -> None:
        """Reports the metrics of the steps since the last report."""
        now = time.monotonic()
        rate = (step - self._last_step) * self._tokens_per_step / (now - self._last_time)
        self._bar.set_postfix(
            loss=f"{metrics['loss']:.3f}", tokens_per_s=f"{rate:,.0f}", refresh=False
        )
        self._bar.update(step - self._last_step)
        if self._bar.disable and (
            now - self._last_line > _LINE_SECONDS or step == self._num_train_steps
        ):
            self._last_line = now
            eta = (
                (now - self._last_time) / (step - self._last_step) * (self._num_train_steps - step)
            )
            print(
                f"step {step}/{self._num_train_steps}  loss {metrics['loss']:.4f}  "
                f"lr {metrics['learning_rate']:.2e}  {rate:,.0f} tokens/s  ETA {eta:.0f} s",
                flush=True,
            )
        self._store("train", step, {**metrics, "tokens_per_second": rate})
        self._last_step, self._last_time = step, now

    def evaluation(self, step: int, metrics: dict[str, float]) -> None:
        """Reports the metrics on held-out data."""
        figures = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        self._bar.write(f"evaluation at step {step}: {figures}", file=sys.stdout)
        sys.stdout.flush()
        self._store("eval", step, metrics)
        self._last_time = time.monotonic()  # Time spent on evaluation is not training time.

    def _store(self, split: str, step: int, metrics: dict[str, float]) -> None:
        with tf.io.gfile.GFile(self._path, "a") as file:
            values = {name: f"{value:.7g}" for name, value in metrics.items()}
            csv.DictWriter(file, self._fields, lineterminator="\n").writerow(
                {"step": step, "split": split, **values}
            )
        with self._writers[split].as_default():
            for name, value in metrics.items():
                tf.summary.scalar(name, value, step=step)

    def _write_rows(self, rows) -> None:
        kept = list(rows)
        with tf.io.gfile.GFile(self._path, "w") as file:
            writer = csv.DictWriter(file, self._fields, lineterminator="\n")
            writer.writeheader()
            writer.writerows(kept)

    def close(self) -> None:
        """Flushes everything."""
        self._bar.close()
        for writer in self._writers.values():
            writer.close()


def read_metrics(path: str) -> list[dict[str, str]]:
    """The rows of a metrics.csv; none when there is no file."""
    if not tf.io.gfile.exists(path):
        return []
    with tf.io.gfile.GFile(path) as file:
        return list(csv.DictReader(file.read().splitlines()))
