"""The figures of a run: of its updates at each stop, and on held-out data when they are due."""

from __future__ import annotations

import time

from albert_tf.optimization.base import AdamFamily
from albert_tf.training.evaluation import HeldOutScores
from albert_tf.training.hooks.base import Hook, Run, Stop


class Reports(Hook):
    """Shows and stores the figures of the updates since the last stop."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def before(self, step: int) -> None:
        """Excludes evaluations and checkpoints from the measured speed."""
        self._run.reporter.restart_clock()

    def after(self, stop: Stop) -> None:
        """Reports, except at an early stop: the next start's first report includes its figures."""
        if stop.is_early:
            return
        stepper, notice = self._run.stepper, self._run.callbacks.notice
        metrics = {name: float(value) for name, value in stop.outcome.metrics.items()}
        has_details = self._run.is_chief and isinstance(stepper.optimizer, AdamFamily)
        details = stepper.describe_updates() if has_details else None
        self._run.reporter.train(stop.step, metrics, details)
        if notice and (line := notice(stop.step, metrics)):
            self._run.reporter.note(line)


class Evaluation(Hook):
    """Evaluates, reports the figures and passes them to the callbacks.

    Attributes:
      figures: the held-out figures of the last evaluation; empty before the first.
      is_under_way: whether an evaluation is running; another thread reads it.
      seconds: the duration of the last evaluation; None before the first.
    """

    def __init__(self, run: Run, evaluator: HeldOutScores | None) -> None:
        self._run, self._evaluator = run, evaluator
        self.figures: dict[str, float] = {}
        self.is_under_way = False
        self.seconds: float | None = None

    def after(self, stop: Stop) -> None:
        """Evaluates if it is due and the weights are sound."""
        is_due = self._run.settings.is_due(stop.step, self._run.settings.eval_steps)
        if is_due and stop.is_sound and not stop.is_early:
            self.make(stop.step)

    def make(self, step: int) -> None:
        """Evaluates the weights after `step` updates, or their averages."""
        if self._evaluator is None:
            return
        reporter, callbacks = self._run.reporter, self._run.callbacks
        with self._run.stepper.averaged():
            began, self.is_under_way = time.monotonic(), True
            self.figures = self._evaluator()
            self.is_under_way, self.seconds = False, time.monotonic() - began
            reporter.evaluation(step, self.figures)
            if self._run.is_chief and callbacks.examples:
                reporter.examples(step, callbacks.examples())
            if self._run.is_chief and callbacks.on_evaluation:
                callbacks.on_evaluation(step, self.figures)

    def at_the_end(self) -> dict[str, float]:
        """The figures of the last step; if the run was already complete, they are computed here,
        but not reported.
        """
        if self._evaluator and not self.figures:
            with self._run.stepper.averaged():
                self.figures = self._evaluator()
        return self.figures
