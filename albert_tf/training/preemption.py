"""What happens when the machine is wanted back: the run is saved, and says so by its exit code."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

import tensorflow as tf

from albert_tf.training.strategy import sum_over_workers

EXIT_CODE = 75  # EX_TEMPFAIL of sysexits.h: run the same command again.


class Preempted(Exception):
    """Training was stopped by SIGTERM at `step`; everything up to `last_saved` is saved.

    That is less where the update of `step` was left out; 0: there is no checkpoint.
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
    """Remembers a SIGTERM while it is entered as a context, in the main thread of a program."""

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
        """Whether SIGTERM came to this process, or to any worker, who then stop at one step."""
        if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return self._arrived
        return sum_over_workers(strategy, float(self._arrived)) > 0
