"""Preemption: on SIGTERM a run is saved and ends, with an exit code that means "run me again"."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

import tensorflow as tf

from albert_tf.training.strategy import sum_over_workers

EXIT_CODE = 75  # EX_TEMPFAIL of sysexits.h: run the same command again.


class Preempted(Exception):
    """The end of training by SIGTERM.

    Attributes:
      step: the last one.
      last_saved: step of the newest checkpoint, an earlier one where the update of `step` was left
        out; 0: there is none.
    """

    def __init__(self, step: int, last_saved: int) -> None:
        lost = ""
        if last_saved < step:
            newest = f"the newest checkpoint is of step {last_saved}"
            lost = (
                ", which was left out because its loss or gradient is not finite and is not saved: "
                + (newest if last_saved else "there is no checkpoint yet")
            )
        super().__init__(f"stopped by SIGTERM at step {step}{lost}; run the same command to go on")
        self.step, self.last_saved = step, last_saved


class TerminationNotice:
    """A context that remembers a SIGTERM, in the main thread of a program."""

    def __init__(self) -> None:
        self._arrived = False
        self._previous: Any = None  # What `signal.signal` returned: a function or a number.

    def __enter__(self) -> TerminationNotice:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGTERM, self._remember)
        return self

    def __exit__(self, *unused: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGTERM, self._previous)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self._arrived = True

    def arrived(self, strategy: tf.distribute.Strategy) -> bool:
        """Whether SIGTERM came to this process or to another worker: all stop at the same step."""
        if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return self._arrived
        return sum_over_workers(strategy, float(self._arrived)) > 0
