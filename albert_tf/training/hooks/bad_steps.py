"""Updates whose loss or gradient is not finite: they are skipped, and too many end the run."""

from __future__ import annotations

from albert_tf.errors import UserError
from albert_tf.training.hooks.base import Hook, Run, Stop
from albert_tf.training.settings import MAX_BAD_IN_A_ROW


class Diverged(UserError):
    """Loss, gradient or weights of a run are not finite."""


class BadSteps(Hook):
    """Reports skipped steps, ends a run with too many, and decides which stops are sound."""

    def __init__(self, run: Run) -> None:
        self._run, self._state, self._settings = run, run.state, run.settings
        self._num_bad = 0
        self._last_good = run.state.step

    def after(self, stop: Stop) -> None:
        """Counts skipped steps; raises Diverged if there are too many, or if weights or moments are
        not finite.
        """
        num_bad = int(stop.outcome.num_bad)
        self._last_good = int(stop.outcome.last_good) or self._last_good
        if num_bad:
            self._num_bad += num_bad
            self._check(int(stop.outcome.first_bad), num_bad, stop.step - self._last_good)
        if not self._state.is_finite():
            raise self._diverged(f"weights or moments are not finite at step {stop.step}")
        # After a skipped step the weights may be broken, which only the next steps show. The last
        # step has no next one, so it is sound: its weights are those of the last good step.
        stop.is_sound = stop.step in (self._last_good, self._settings.num_train_steps)

    def _check(self, first: int, count: int, in_a_row: int) -> None:
        """Prints that steps were skipped; raises Diverged if they were too many."""
        source, describe_batch = "", self._run.callbacks.describe_batch
        if describe_batch:
            source = f" (its batch comes from {describe_batch(first)})"
        found = f"loss or gradient is not finite at step {first}{source}"
        if self._num_bad > self._settings.max_bad_steps:
            raise self._diverged(found, ", or let --max_bad_steps leave out such steps")
        if in_a_row >= MAX_BAD_IN_A_ROW:
            raise self._diverged(
                f"{found}; {in_a_row} steps in a row were left out, and leaving out more "
                "would not help"
            )
        self._run.reporter.note(f"{found}; {count} step(s) left out, {self._num_bad} so far")

    def _diverged(self, found: str, remedy: str = "") -> Diverged:
        """The error, with the checkpoint to use."""
        # A save may be in progress: wait, so that the message names its checkpoint.
        self._state.wait()
        return Diverged(
            f"{found}; last good checkpoint: {self._state.latest}. Lower --learning_rate, or "
            f"lengthen the warm-up{remedy}."
        )
