"""The figures of the updates, shown and stored at each stop."""

from __future__ import annotations

from albert_tf.optimization.base import AdamFamily
from albert_tf.training.loop import Hook, Run, Stop


class Reports(Hook):
    """Reports the updates since the last stop. One that came early has no report of its own: its
    figures are in the next one, of the next start.
    """

    def __init__(self, run: Run) -> None:
        self._reporter, self._stepper = run.reporter, run.stepper
        self._notice = run.callbacks.notice
        self._has_details = run.is_chief and isinstance(run.stepper.optimizer, AdamFamily)

    def before(self, step: int) -> None:
        """Leaves evaluations and checkpoints out of the speed."""
        self._reporter.restart_clock()

    def after(self, stop: Stop) -> None:
        """Shows and stores the figures."""
        if stop.is_early:
            return
        metrics = {name: float(value) for name, value in stop.outcome.metrics.items()}
        details = self._stepper.describe_updates() if self._has_details else None
        self._reporter.train(stop.step, metrics, details)
        if self._notice and (line := self._notice(stop.step, metrics)):
            self._reporter.note(line)
