"""Evaluation on held-out data, at the stops at which it is due."""

from __future__ import annotations

import time

from albert_tf.training.evaluation import HeldOutScores
from albert_tf.training.loop import Hook, Run, Stop


class Evaluation(Hook):
    """Evaluates, and tells the figures to those who wait for them.

    It comes before the checkpoint: a run that is interrupted between the two makes both again. An
    evaluation after the checkpoint would be lost.

    Attributes:
      figures: the held-out figures of the last evaluation; empty before the first.
      is_under_way: whether an evaluation is being made; another thread reads it.
      seconds: the duration of the last evaluation; None before the first.
    """

    def __init__(self, run: Run, evaluator: HeldOutScores | None) -> None:
        self._run, self._evaluator = run, evaluator
        self.figures: dict[str, float] = {}
        self.is_under_way = False
        self.seconds: float | None = None

    def after(self, stop: Stop) -> None:
        """Evaluates sound weights where it is due."""
        is_due = self._run.settings.is_due(stop.step, self._run.settings.eval_steps)
        if is_due and stop.is_sound and not stop.is_early:
            self.make(stop.step)

    def make(self, step: int) -> None:
        """Evaluates the weights after `step` updates."""
        if self._evaluator is None:
            return
        began, self.is_under_way = time.monotonic(), True
        self.figures = self._evaluator()
        self.is_under_way, self.seconds = False, time.monotonic() - began
        reporter, callbacks = self._run.reporter, self._run.callbacks
        reporter.evaluation(step, self.figures)
        if self._run.is_chief and callbacks.examples:
            reporter.examples(step, callbacks.examples())
        if self._run.is_chief and callbacks.on_evaluation:
            callbacks.on_evaluation(step, self.figures)

    def at_the_end(self) -> dict[str, float]:
        """The figures of the last step; they are computed, not reported again, where the run was
        complete before.
        """
        if self._evaluator and not self.figures:
            self.figures = self._evaluator()
        return self.figures
