"""The training loop: updates, and between them what the hooks do.

    while step < num_train_steps:
        updates in one call of TensorFlow, up to the next stop     Stepper.train
        what is due there: report, evaluation, checkpoint, ...     hooks/, in the order of `train`

One call makes many updates, because Python between two of them would cost more than a small one.
All that has to happen at a certain step, such as a checkpoint, therefore has to be a stop.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence

import tensorflow as tf

from albert_tf.models.losses import Ratio
from albert_tf.training.report.progress import Reporter, SilentReporter
from albert_tf.training.settings import LoopSettings
from albert_tf.training.state import TrainingState
from albert_tf.training.steps import Outcome, Stepper
from albert_tf.training.strategy import is_chief


@dataclasses.dataclass(frozen=True)
class Callbacks:
    """Functions of a program that the hooks call; all may be left out.

    Attributes:
      on_evaluation: called with (step, figures) after each evaluation, e.g. to keep the best model.
      examples: returns predictions on held-out data as Markdown, for TensorBoard.
      describe_batch: from a step (1-based) to the file and place that its batch comes from.
      notice: called with (step, figures) after each report; a line to print, or None.
    """

    on_evaluation: Callable[[int, dict[str, float]], None] | None = None
    examples: Callable[[], str] | None = None
    describe_batch: Callable[[int], str] | None = None
    notice: Callable[[int, dict[str, float]], str | None] | None = None


@dataclasses.dataclass
class Stop:
    """A step at which the loop looks up. Hooks read what has happened, and say what they need.

    Attributes:
      step: the number of updates made.
      outcome: the figures of the updates since the last report.
      seconds: the duration of an update, on average since the last stop.
      is_early: whether a signal ended the updates here, where no hook had asked for a stop.
      is_sound: whether the weights are worth an evaluation and a checkpoint; see `BadSteps`.
      needs_checkpoint: whether a hook needs a checkpoint here, although none is due.
      end: called, if a hook sets it, when that checkpoint is safe; the loop ends with it.
    """

    step: int
    outcome: Outcome
    seconds: float
    is_early: bool
    is_sound: bool = True
    needs_checkpoint: bool = False
    end: Callable[[], None] | None = None


@dataclasses.dataclass(frozen=True)
class Run:
    """The parts of a run that the loop and its hooks share.

    Attributes:
      stepper: the training steps.
      state: model, optimizer and step, and their checkpoints.
      settings: number of updates, and what is due when.
      run_dir: folder of the run.
      reporter: shows and stores the figures; on workers that are not the chief, nothing.
      callbacks: functions of the program.
    """

    stepper: Stepper
    state: TrainingState
    settings: LoopSettings
    run_dir: str
    reporter: Reporter | SilentReporter
    callbacks: Callbacks

    @property
    def is_chief(self) -> bool:
        """Whether this process is the one of all workers that writes."""
        return is_chief(self.stepper.strategy)


class Hook:
    """Work that is done between updates. A hook defines those of the methods that it needs."""

    def before(self, step: int) -> None:
        """Called before each call of TensorFlow, with the number of updates made."""

    def next_stop(self, step: int) -> int | None:
        """The next step after `step` that has to be a stop; None: any will do."""

    def after(self, stop: Stop) -> None:
        """Called at each stop."""


class Loop:
    """Trains to the last step, and calls the hooks at each stop, in their order."""

    def __init__(self, run: Run, hooks: Sequence[Hook]) -> None:
        self._stepper, self._state, self._settings = run.stepper, run.state, run.settings
        self._hooks = hooks

    def run(self, training_data: Callable[..., tf.data.Dataset], totals: dict[str, Ratio]) -> bool:
        """Trains from the step of the state on.

        Args:
          training_data: called with `start_step=`; see `train`.
          totals: sums of the updates since the last report, see `Outcome`.

        Returns:
          Whether the last step is reached; False where a hook ended the run before.
        """
        step = self._state.step
        data = functools.partial(training_data, start_step=step)
        iterator = iter(self._stepper.distribute(data))
        while step < self._settings.num_train_steps:
            for hook in self._hooks:
                hook.before(step)
            first, last, began = step, self._next_stop(step), time.monotonic()
            outcome = self._stepper.train(iterator, tf.constant(last - first), totals)
            step, totals = self._state.step, self._stepper.no_totals()
            seconds = (time.monotonic() - began) / max(step - first, 1)
            stop = Stop(step, outcome, seconds, is_early=step < last)
            for hook in self._hooks:
                hook.after(stop)
            if stop.end:
                self._state.wait()
                stop.end()
                return False
        self._state.wait()
        return True

    def _next_stop(self, step: int) -> int:
        stops = [self._settings.next_stop(step), *(hook.next_stop(step) for hook in self._hooks)]
        return min(stop for stop in stops if stop is not None)
