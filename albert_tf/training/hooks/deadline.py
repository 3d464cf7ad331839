"""--max_minutes: the clock decides at which steps the decay begins and ends, and nothing else.

Before the decay the learning rate is constant; from there on, the number of steps is fixed as in
any other run. `Deadline` ends the loop there and records the last step for `with_chosen_end`.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.training import starts
from albert_tf.training.hooks.base import Hook, Run, Stop
from albert_tf.training.settings import RunSettings
from data_pipeline.files import json_records

MINUTES_FILE = "minutes.json"


@dataclasses.dataclass(frozen=True)
class Minutes:
    """The content of minutes.json. Here 72 of 90 minutes are used; the decay takes a fifth of 90.

        {"max_minutes": 90, "seconds": 4320.0, "decay_start": 10000, "num_train_steps": 12500}

    `seconds` count up to the last checkpoint, over all starts. `decay_start` is the last step at
    the highest rate; it and `num_train_steps` are None until the end is chosen.
    """

    max_minutes: float
    seconds: float = 0.0
    decay_start: int | None = None
    num_train_steps: int | None = None


def _path(settings: RunSettings) -> str:
    return os.path.join(settings.output_dir, MINUTES_FILE)


def read_minutes(settings: RunSettings) -> Minutes:
    """The minutes of the run in a folder; an end that was chosen for fewer minutes is dropped."""
    path, asked = _path(settings), settings.loop.max_minutes
    if not tf.io.gfile.exists(path):
        return Minutes(asked)
    remedy = "Delete it to ignore the minutes of earlier starts"
    found = json_records.parse(Minutes, starts.read_run_json(path, remedy), path)
    if found.num_train_steps is None or asked > found.max_minutes:
        return Minutes(asked, found.seconds)
    if asked < found.max_minutes:
        raise UserError(
            f"--max_minutes={asked:g}: this run was given {found.max_minutes:g} minutes, which "
            f"fixed its end at step {found.num_train_steps}. Give that many minutes or more, or "
            "pass --overwrite to delete it."
        )
    return found


def with_chosen_end(settings: RunSettings) -> RunSettings:
    """The settings or, once the end is chosen, those of a run of that many steps without a time
    limit. flags.json keeps the user's.
    """
    chosen = read_minutes(settings) if settings.loop.max_minutes else Minutes(0)
    start, last = chosen.decay_start, chosen.num_train_steps
    if start is None or last is None:
        return settings
    if settings.loop.num_train_steps < last:
        raise UserError(
            f"--num_train_steps={settings.loop.num_train_steps}: the minutes of this run have "
            f"fixed its end at step {last}. Give that many or more, or --overwrite to start over."
        )
    return dataclasses.replace(
        settings,
        optimizer=dataclasses.replace(settings.optimizer, decay_share=share_of_decay(start, last)),
        loop=dataclasses.replace(settings.loop, num_train_steps=last, max_minutes=0.0),
        flags=settings.as_flags(),
    )


def share_of_decay(decay_start: int, num_train_steps: int) -> float:
    """The `decay_share` for which `optimization.decay_start` returns this step."""
    return (num_train_steps - decay_start) / num_train_steps


class Deadline(Hook):
    """Ends the loop where the decay has to begin so that the run ends in time.

    It runs after the evaluation, whose time counts, and before the checkpoint is saved from which
    the decay starts.
    """

    def __init__(self, settings: RunSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._minutes = read_minutes(settings)
        self._first: tuple[int, float] | None = None  # Step and time of this start's first report.
        self._speed = 0.0  # Steps a second since then.

    def start(self, run: Run) -> None:
        """Starts the clock, when training begins."""
        self._note, self._began = run.reporter.note, self._clock()

    def after(self, stop: Stop) -> None:
        """Ends the loop in time, unless a signal or the decay of --num_train_steps comes first."""
        last = self._settings.loop.num_train_steps
        decay_start = self._settings.optimizer.decay_start(last)
        is_over = stop.step >= (last if decay_start is None else decay_start)
        if is_over or not stop.is_sound or stop.is_early or stop.end:
            return
        if self._is_reached(stop.step):
            # The end is chosen once the checkpoint is on disk. A run killed before that continues
            # at the highest learning rate and chooses a later end.
            stop.needs_checkpoint, stop.end = True, lambda: self._choose_end(stop.step)

    def _is_reached(self, step: int) -> bool:
        # The first report includes compilation, so the speed is measured from the second one on.
        if self._first is None:
            self._first = step, self._clock()
            return False
        is_second = not self._speed
        optimizer, now = self._settings.optimizer, self._clock()
        self._speed = (step - self._first[0]) / max(now - self._first[1], 1e-9)
        left = (1 - optimizer.decay_share) * self._minutes.max_minutes * 60 - self._seconds()
        expected = step + int(max(left, 0.0) * self._speed)
        if is_second and expected < optimizer.num_warmup_steps:
            raise UserError(
                f"--max_minutes={self._minutes.max_minutes:g}: at this speed the learning rate has "
                f"to fall from step {expected} on, during its warm-up. Lower "
                f"--num_warmup_steps={optimizer.num_warmup_steps}, or give more minutes."
            )
        return left <= 0 and step >= optimizer.num_warmup_steps

    def _choose_end(self, step: int) -> None:
        """Plans as many decay steps as the remaining minutes allow; records and prints the end."""
        left = max(self._minutes.max_minutes * 60 - self._seconds(), 0.0)
        last = step + max(round(left * self._speed), 1)
        last = min(last, self._settings.loop.num_train_steps)
        self._minutes = dataclasses.replace(self._minutes, decay_start=step, num_train_steps=last)
        self.record()
        self._note(
            f"--max_minutes: the rate falls from step {step} on, and the run ends with step {last} "
            f"({MINUTES_FILE}); to repeat it on any machine: --num_train_steps={last} "
            f"--decay_share={share_of_decay(step, last)}"
        )

    def record(self) -> None:
        """Writes the seconds up to now, and the end if it is chosen."""
        now = dataclasses.replace(self._minutes, seconds=round(self._seconds(), 1))
        starts.write_run_json(_path(self._settings), dataclasses.asdict(now))

    def _seconds(self) -> float:
        """Seconds of training over all starts."""
        return self._minutes.seconds + self._clock() - self._began
