"""The interface of hooks, and what the loop passes to them: the run they share, and each stop."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from albert_tf.training.report.progress import Reporter, SilentReporter
from albert_tf.training.settings import LoopSettings
from albert_tf.training.state import TrainingState
from albert_tf.training.steps import Outcome, Stepper
from albert_tf.training.strategy import is_chief


@dataclasses.dataclass(frozen=True)
class Callbacks:
    """Functions of a program that the hooks call; all are optional.

    Attributes:
      on_evaluation: called with (step, figures) after each evaluation, e.g. to keep the best model.
      examples: returns predictions on held-out data as Markdown, for TensorBoard.
      describe_batch: maps a step (1-based) to the file and position of its batch.
      notice: called with (step, figures) after each report; a line to print, or None.
    """

    on_evaluation: Callable[[int, dict[str, float]], None] | None = None
    examples: Callable[[], str] | None = None
    describe_batch: Callable[[int], str] | None = None
    notice: Callable[[int, dict[str, float]], str | None] | None = None


@dataclasses.dataclass(frozen=True)
class Run:
    """The parts of a run that the loop and its hooks share."""

    stepper: Stepper
    state: TrainingState
    settings: LoopSettings
    run_dir: str
    reporter: Reporter | SilentReporter  # Silent on workers that are not the chief.
    callbacks: Callbacks

    @property
    def is_chief(self) -> bool:
        """Whether this process is the worker that writes files."""
        return is_chief(self.stepper.strategy)


@dataclasses.dataclass
class Stop:
    """A step at which the loop runs the hooks. They read the outcome, and set what they need.

    Attributes:
      step: the number of updates made.
      outcome: the figures of the updates since the last report.
      seconds: the duration of an update, on average since the last stop.
      is_early: whether a signal ended the updates here, before the planned stop.
      is_sound: whether the weights may be evaluated and saved; see `BadSteps`.
      needs_checkpoint: whether a hook needs a checkpoint here, although none is due.
      end: set by a hook to end the loop; called when that checkpoint is on disk.
    """

    step: int
    outcome: Outcome
    seconds: float
    is_early: bool
    is_sound: bool = True
    needs_checkpoint: bool = False
    end: Callable[[], None] | None = None


class Hook:
    """Work that is done between updates. A hook defines the methods that it needs."""

    def before(self, step: int) -> None:
        """Called before each call of TensorFlow, with the number of updates made."""

    def next_stop(self, step: int) -> int | None:
        """The next step after `step` that has to be a stop; None: no particular one."""

    def after(self, stop: Stop) -> None:
        """Called at each stop."""
