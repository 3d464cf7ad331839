"""The progress of a run as it is shown and stored: lines, metrics.csv and TensorBoard."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf
from tqdm import tqdm

from albert_tf.training.report.metrics_file import METRICS_FILE, MetricsFile

_MEASURED = ("learning_rate", "gradient_norm", "tokens_per_second")
_LINE_SECONDS = 15.0  # Between two lines of progress, if there is no terminal.


@dataclasses.dataclass(frozen=True)
class StepCost:
    """The work of one training step, with which its time is compared.

    Attributes:
      tokens: the tokens of a global batch, see `TrainingData.tokens_per_example`.
      flops: floating point operations of a training step; 0 if unknown.
      machine_flops_per_second: the rate of the devices at their best; 0 if unknown.
      whole_steps: converts the first `step` updates to a number of such steps, if some batches are
        smaller: two updates on half the size are 1.
    """

    tokens: float
    flops: float = 0.0
    machine_flops_per_second: float = 0.0
    whole_steps: Callable[[int], float] = float


class Reporter:
    """Shows and stores the figures of a training run."""

    def __init__(
        self,
        run_dir: str,
        train_metrics: Sequence[str],
        eval_metrics: Sequence[str],
        num_train_steps: int,
        start_step: int,
        cost: StepCost,
    ) -> None:
        """train_metrics, eval_metrics: names of the figures that will be reported."""
        self._cost = cost
        self._last_step = start_step
        self._num_train_steps = num_train_steps
        self._last_time = self._last_line = time.monotonic()
        self._writers = {
            split: tf.summary.create_file_writer(os.path.join(run_dir, "tensorboard", split))
            for split in ("train", "eval")
        }
        # After the writers, which make the folder.
        self._metrics_file = MetricsFile(
            os.path.join(run_dir, METRICS_FILE),
            ("loss", *train_metrics, *eval_metrics, *_MEASURED),
            start_step,
        )
        self._bar = tqdm(
            total=num_train_steps,
            initial=start_step,
            unit="step",
            disable=not sys.stderr.isatty(),
            dynamic_ncols=True,
        )

    def train(
        self,
        step: int,
        metrics: dict[str, float],
        details: Mapping[str, Mapping[str, tf.Tensor]] | None = None,
    ) -> None:
        """Reports the figures of the steps since the last report; `details` are for TensorBoard
        only: kind -> name of the variable -> figure.
        """
        now = time.monotonic()
        done, before = map(self._cost.whole_steps, (step, self._last_step))
        steps_per_second = (done - before) / (now - self._last_time)
        rate = self._cost.tokens * steps_per_second
        speed = f"{rate:,.0f} tokens/s"
        share = 0.0
        if self._cost.machine_flops_per_second:
            share = self._cost.flops * steps_per_second / self._cost.machine_flops_per_second
            if share <= 1:  # More: the machine was busy while its speed was measured.
                speed += f" ({share:.0%} of matmul)"
        line = f"loss {metrics['loss']:.4f}  lr {metrics['learning_rate']:.2e}  {speed}"
        self._bar.set_postfix_str(line, refresh=False)
        self._bar.update(step - self._last_step)
        is_due = now - self._last_line > _LINE_SECONDS or step == self._num_train_steps
        if self._bar.disable and is_due:
            self._last_line = now
            eta = (self._cost.whole_steps(self._num_train_steps) - done) / steps_per_second
            total = self._num_train_steps
            print(f"step {step}/{total}  {line}  ETA {_duration(eta)}", flush=True)
        self._store("train", step, {**metrics, "tokens_per_second": rate})
        with self._writers["train"].as_default(step):
            if share:
                tf.summary.scalar("share_of_matmul", share)
            for kind, values in (details or {}).items():
                for name, value in values.items():
                    tf.summary.scalar(f"{kind}/{name}", value)
        # Not `now`: writing the report is not training time.
        self._last_step, self._last_time = step, time.monotonic()

    def evaluation(self, step: int, metrics: dict[str, float]) -> None:
        """Reports the metrics on held-out data after `step` updates."""
        figures = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        self.note(f"evaluation at step {step}: {figures}")
        self._store("eval", step, metrics)

    def examples(self, step: int, markdown: str) -> None:
        """Stores example predictions on held-out data, as text for TensorBoard."""
        with self._writers["eval"].as_default(step):
            tf.summary.text("predictions", markdown)

    def note(self, line: str) -> None:
        """Prints a line."""
        self._bar.write(line, file=sys.stdout)
        sys.stdout.flush()

    def sync(self) -> None:
        """Returns when metrics.csv is on disk."""
        self._metrics_file.sync()

    def restart_clock(self) -> None:
        """Excludes the time since the last report, which was not training, from the rates."""
        self._last_time = time.monotonic()

    def _store(self, split: str, step: int, metrics: dict[str, float]) -> None:
        self._metrics_file.add(step, split, metrics)
        with self._writers[split].as_default(step):
            for name, value in metrics.items():
                tf.summary.scalar(name, value)

    def close(self) -> None:
        """Writes what is not written yet, and ends the progress bar."""
        self._bar.close()
        for writer in self._writers.values():
            writer.close()


class SilentReporter:
    """A Reporter that shows and stores nothing, for all workers but the chief."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *unused, **also_unused: None


def _duration(seconds: float) -> str:
    """3671 -> "1:01:11"."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
