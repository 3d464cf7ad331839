"""--max_minutes: the end of a run, chosen once, from its speed, and recorded in its folder.

Before the choice the rate is constant and the step alone decides every update; after it the run is
one of so many steps, like any other. A clock decides nothing but where the decay begins.

1. `with_chosen_end`: a run whose end an earlier start has chosen has that many steps.
2. `open_deadline`: the minutes of any other count.
3. `DeadlineHook` ends the loop where the decay has to begin, and chooses the end.
4. `with_chosen_end`, again: the same run goes on to that end.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.training import starts
from albert_tf.training.loop import Hook, Run, Stop
from albert_tf.training.settings import RunSettings

ENDING_FILE = "minutes.json"


@dataclasses.dataclass(frozen=True)
class Ending:
    """The end of a run, in steps.

    Attributes:
      decay_start: the last step at the highest rate.
      num_train_steps: updates in all.
    """

    decay_start: int
    num_train_steps: int

    @property
    def decay_share(self) -> float:
        """The share with which `optimization.decay_start` gives this one's."""
        return (self.num_train_steps - self.decay_start) / self.num_train_steps


class Deadline:
    """The minutes that a run may train for, over all its starts, and what they decide.

    minutes.json of a run that is allowed 90 minutes, of which a fifth is decay; it was interrupted
    once, and made 10,000 updates in 72 minutes:

        {"max_minutes": 90, "seconds": 2400.0, "decay_start": null, "num_train_steps": null}
        {"max_minutes": 90, "seconds": 4320.0, "decay_start": 10000, "num_train_steps": 12500}
    """

    def __init__(
        self,
        run_dir: str,
        max_minutes: float,
        decay_share: float,
        num_warmup_steps: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Reads the record of earlier starts, if there is one.

        Args:
          run_dir: folder of the run.
          max_minutes: of training in all, with evaluations and checkpoints.
          decay_share: share of the minutes in which the rate falls.
          num_warmup_steps: updates before which it does not begin to.
          clock: seconds since some moment.

        Raises:
          UserError: the record is damaged, or the run has an end for more minutes than these.
        """
        self._path = os.path.join(run_dir, ENDING_FILE)
        self._max_minutes, self._decay_share, self._clock = max_minutes, decay_share, clock
        self._num_warmup_steps = num_warmup_steps
        self._seconds_before = 0.0
        self._began = clock()
        self._first: tuple[int, float] | None = None  # Step and time of this start's first report.
        self._is_checked = num_warmup_steps == 0
        self.ending: Ending | None = None
        self._read()

    def _read(self) -> None:
        if not tf.io.gfile.exists(self._path):
            return
        remedy = "Delete it, and the minutes of earlier starts do not count"
        record = starts.read_run_json(self._path, remedy)
        self._seconds_before = record["seconds"]
        if record["num_train_steps"] is None or record["max_minutes"] < self._max_minutes:
            return
        if record["max_minutes"] > self._max_minutes:
            raise UserError(
                f"--max_minutes={self._max_minutes:g}: this run was given "
                f"{record['max_minutes']:g} minutes, and its end is fixed at step "
                f"{record['num_train_steps']}. Give it as many or more, or pass --overwrite to "
                "delete it."
            )
        self.ending = Ending(record["decay_start"], record["num_train_steps"])

    def start(self) -> None:
        """Begins to count: from here on the run trains."""
        self._began, self._first = self._clock(), None

    def is_reached(self, step: int) -> bool:
        """Whether the decay has to begin at a step that was just reported.

        Not before the second report of a start, which is the first to show a speed: the first
        one's steps were compiled.

        Raises:
          UserError: at that speed the warm-up alone takes longer.
        """
        if self._first is None:
            self._first = step, self._clock()
            return False
        left = (1 - self._decay_share) * self._max_minutes * 60 - self._seconds()
        if not self._is_checked:
            self._check_warmup(step, left)
        return left <= 0 and step >= self._num_warmup_steps

    def _check_warmup(self, step: int, left: float) -> None:
        """Raises UserError where the rate has to fall before it has risen."""
        self._is_checked = True
        expected = step + int(max(left, 0.0) * self._speed(step))
        if expected < self._num_warmup_steps:
            raise UserError(
                f"--max_minutes={self._max_minutes:g}: at this speed the learning rate has to fall "
                f"from step {expected} on, in the midst of its warm-up. Lower --num_warmup_steps="
                f"{self._num_warmup_steps}, or give more minutes."
            )

    def _speed(self, step: int) -> float:
        """Steps a second since the first report of this start."""
        assert self._first is not None
        first_step, first_time = self._first
        return (step - first_step) / max(self._clock() - first_time, 1e-9)

    def choose_ending(self, step: int, num_train_steps: int) -> Ending:
        """The end for a decay that begins now; it is recorded, and holds from now on.

        Args:
          step: the last one at the highest rate.
          num_train_steps: the largest number of updates.

        Returns:
          As many steps of decay as the minutes left allow, at the speed since the first report.
        """
        left = max(self._max_minutes * 60 - self._seconds(), 0.0)
        length = max(round(left * self._speed(step)), 1)
        self.ending = Ending(step, min(step + length, num_train_steps))
        self.record()
        return self.ending

    def record(self) -> None:
        """Writes minutes.json: the seconds up to now, and the end if it is chosen."""
        ending = self.ending
        values = {
            "max_minutes": self._max_minutes,
            "seconds": round(self._seconds(), 1),
            "decay_start": ending.decay_start if ending else None,
            "num_train_steps": ending.num_train_steps if ending else None,
        }
        starts.write_run_json(self._path, values)

    def _seconds(self) -> float:
        """Seconds of training, of all starts."""
        return self._seconds_before + self._clock() - self._began


class DeadlineHook(Hook):
    """Ends the loop where the decay has to begin for the run to end in time.

    It comes after the evaluation, whose minutes count, and before the checkpoint that the decay
    begins with.
    """

    def __init__(self, run: Run, deadline: Deadline, decay_start: int | None) -> None:
        """decay_start: where the decay begins in any case; None: nowhere. The minutes begin."""
        self._deadline, self._reporter = deadline, run.reporter
        self._num_train_steps = run.settings.num_train_steps
        self._decay_start = self._num_train_steps if decay_start is None else decay_start
        deadline.start()

    def after(self, stop: Stop) -> None:
        """Ends the loop, unless a signal does."""
        if not stop.is_sound or stop.is_early or stop.end or stop.step >= self._decay_start:
            return
        if self._deadline.is_reached(stop.step):
            stop.needs_checkpoint = True
            stop.end = lambda: self._choose(stop.step)

    def _choose(self, step: int) -> None:
        ending = self._deadline.choose_ending(step, self._num_train_steps)
        last = ending.num_train_steps
        self._reporter.note(
            f"--max_minutes: the rate falls from step {step} on, and the run ends with step {last} "
            f"({ENDING_FILE}); with --num_train_steps={last} --decay_share={ending.decay_share} "
            "any machine repeats it"
        )


def _deadline_of(settings: RunSettings) -> Deadline:
    optimizer, minutes = settings.optimizer, settings.loop.max_minutes
    return Deadline(settings.output_dir, minutes, optimizer.decay_share, optimizer.num_warmup_steps)


def open_deadline(settings: RunSettings) -> Deadline | None:
    """The deadline of a run whose end is not chosen yet; None without --max_minutes, too."""
    if not settings.loop.max_minutes:
        return None
    deadline = _deadline_of(settings)
    return None if deadline.ending else deadline


def with_chosen_end(settings: RunSettings) -> RunSettings:
    """The settings with the number of updates and the decay that the deadline has chosen, where it
    has. flags.json keeps the user's.

    Raises:
      UserError: the chosen end is beyond the number of updates that is given now.
    """
    ending = _deadline_of(settings).ending if settings.loop.max_minutes else None
    if ending is None:
        return settings
    if settings.loop.num_train_steps < ending.num_train_steps:
        raise UserError(
            f"--num_train_steps={settings.loop.num_train_steps}: the minutes of this run have "
            f"fixed its end at step {ending.num_train_steps}. Give as many or more, or --overwrite "
            "to begin anew."
        )
    return dataclasses.replace(
        settings,
        optimizer=dataclasses.replace(settings.optimizer, decay_share=ending.decay_share),
        loop=dataclasses.replace(settings.loop, num_train_steps=ending.num_train_steps),
        flags=settings.as_flags(),
    )
