"""SIGTERM and Ctrl-C between updates: the run is saved and ends."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

import tensorflow as tf

from albert_tf.models.losses import Ratio
from albert_tf.training import starts
from albert_tf.training.checkpoint_files import checkpoints_dir, whole
from albert_tf.training.hooks.base import Hook, Run, Stop
from albert_tf.training.hooks.checkpoints import Checkpoints
from albert_tf.training.hooks.figures import Evaluation
from albert_tf.training.preemption import Preempted, StopRequest
from data_pipeline.files import atomic_files

# The sums of a run that was stopped between two reports; the next start continues with them.
_TOTALS = "partial_report.json"


class Preemption(Hook):
    """Ends the run at the first stop after a signal, which lets only the current update finish."""

    def __init__(
        self, run: Run, request: StopRequest, evaluation: Evaluation, checkpoints: Checkpoints
    ) -> None:
        self._run, self._stepper, self._state = run, run.stepper, run.state
        self._request, self._evaluation, self._checkpoints = request, evaluation, checkpoints
        self._first = run.state.step
        self._call = run.state.step, time.monotonic()  # Of TensorFlow's last call.
        self._seconds: float | None = None  # The last duration of an update.
        request.watch(self)

    def before(self, step: int) -> None:
        """Records when TensorFlow is called."""
        self._call = step, time.monotonic()

    def after(self, stop: Stop) -> None:
        """After a signal, requests a checkpoint and ends the run, unless this was its last step."""
        if self._call[0] > self._first:  # The first call compiles.
            self._seconds = stop.seconds
        # Before the checkpoint of this step: without it the totals are ignored, so that a kill
        # between the two loses nothing.
        if stop.is_early and stop.is_sound and self._run.is_chief:
            write_totals(self._run.run_dir, stop.step, stop.outcome.totals)
        # All workers take part in this check, so that they stop at the same step.
        if stop.is_early or self._request.arrived(self._stepper.strategy):
            stop.needs_checkpoint = True
            if stop.step < self._run.settings.num_train_steps:
                stop.end = lambda: self._end(stop.step)

    def _end(self, step: int) -> None:
        raise Preempted(step, self._checkpoints.last_saved, self._request.number)

    # The thread that listens for signals calls these two while the main thread is in TensorFlow.

    def ask_to_stop(self) -> str:
        """Ends the updates; returns the work that is finished first, with its duration if known."""
        self._stepper.stop()
        step, (first, began) = self._state.step, self._call
        if self._evaluation.is_under_way:
            return f"the evaluation at step {step}{_about(self._evaluation.seconds)}"
        update = f"update {min(step + 1, self._run.settings.num_train_steps)}"
        if step == self._first:
            return f"{update}, which is compiled first"
        if step > first > self._first:
            self._seconds = (time.monotonic() - began) / (step - first)
        return f"{update}{_about(self._seconds)}"

    def newest_checkpoint(self) -> int:
        """Step of the newest checkpoint that is complete; 0: there is none."""
        return max(whole(checkpoints_dir(self._run.run_dir)), default=0)


def _about(seconds: float | None) -> str:
    return "" if seconds is None else f" (about {max(seconds, 0.1):.1f} seconds)"


def write_totals(run_dir: str, step: int, totals: Mapping[str, Ratio]) -> None:
    """Stores the sums since the last report when a run is stopped at a step. float32 values survive
    JSON bit by bit: {"step": 7, "totals": {"masked_lm_loss": [118.52069091796875, 14.0]}}.
    """
    values = {name: [float(part) for part in ratio] for name, ratio in totals.items()}
    atomic_files.write_json(os.path.join(run_dir, _TOTALS), {"step": step, "totals": values})


def read_totals(run: Run) -> dict[str, Ratio]:
    """The sums that a run continues with: zeros unless its last start ended between reports."""
    none, path = run.stepper.no_totals(), os.path.join(run.run_dir, _TOTALS)
    if not tf.io.gfile.exists(path):
        return none
    remedy = "Delete it to average only later updates in the next row of metrics.csv"
    record = starts.read_run_json(path, remedy)
    if record["step"] != run.state.step or record["totals"].keys() != none.keys():
        return none
    return {
        name: Ratio(*(tf.constant(part, tf.float32) for part in parts))
        for name, parts in record["totals"].items()
    }
