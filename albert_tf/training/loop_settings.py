"""The length of a run, and when it reports, saves and evaluates."""

from __future__ import annotations

import dataclasses

from albert_tf.errors import UserError

MAX_BAD_IN_A_ROW = 10  # Steps; see `LoopSettings.max_bad_steps`.


@dataclasses.dataclass(frozen=True)
class LoopSettings:
    """The length of a run, and what is done when; all figures are in steps, but for
    `keep_checkpoints` and `max_minutes`.

    Attributes:
      num_train_steps: updates in all.
      steps_per_loop: updates between two reports, run without returning to Python.
      checkpoint_steps: updates between two checkpoints.
      eval_steps: updates between two evaluations; 0 evaluates at the end only.
      keep_checkpoints: how many of the newest checkpoints are kept.
      max_bad_steps: how many steps without a finite loss and gradient are left out before the run
        stops; 0 stops at the first. It stops after MAX_BAD_IN_A_ROW of them in a row, too: weights
        that are not updated do not heal.
      allow_changes: which of starts.CHANGES are accepted when a run is continued.
      max_minutes: of training, over all starts, the decay included: where `num_train_steps` would
        take longer, the decay begins earlier, see deadline.py; 0: no limit.
      eval_first: whether the weights that training begins with are evaluated, too, as step 0.
    """

    num_train_steps: int
    steps_per_loop: int = 10
    checkpoint_steps: int = 1000
    eval_steps: int = 0
    keep_checkpoints: int = 3
    max_bad_steps: int = 0
    allow_changes: tuple[str, ...] = ()
    max_minutes: float = 0.0
    eval_first: bool = False

    def __post_init__(self) -> None:
        for name in ("num_train_steps", "steps_per_loop", "checkpoint_steps", "keep_checkpoints"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name}={getattr(self, name)} is not a positive number.")
        for name in ("eval_steps", "max_bad_steps", "max_minutes"):
            if getattr(self, name) < 0:
                raise UserError(f"--{name}={getattr(self, name)} is negative.")

    def next_stop(self, step: int) -> int:
        """The next step after `step` at which something is reported, saved or evaluated.

        With periods of 10, 25 and 40 steps: 0 -> 10 -> 20 -> 25 -> 30 -> 40 -> 50.
        """
        periods = [self.steps_per_loop, self.checkpoint_steps] + (
            [self.eval_steps] if self.eval_steps else []
        )
        return min(self.num_train_steps, *(step - step % period + period for period in periods))

    def is_due(self, step: int, period: int) -> bool:
        """Whether something done every `period` steps (0: never) and at the end is to be done at
        `step`.
        """
        return step == self.num_train_steps or (period > 0 and step % period == 0)
