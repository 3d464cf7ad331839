"""SIGTERM and Ctrl-C: a run is saved and ends, with an exit code that means "run me again"."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from types import FrameType
from typing import Any, NoReturn, Protocol

import tensorflow as tf
from tqdm import tqdm

from albert_tf.training.strategy import sum_over_workers

EXIT_CODE = 75  # EX_TEMPFAIL of sysexits.h: run the same command again.
_INTERRUPTED = 130  # The code that shells report after Ctrl-C.
_NAMES = {signal.SIGTERM: "SIGTERM", signal.SIGINT: "Ctrl-C"}


class Preempted(Exception):
    """Raised when a signal ends training at a step; the program exits with its `exit_code`."""

    def __init__(self, step: int, last_saved: int, number: int | None = signal.SIGTERM) -> None:
        """last_saved: step of the newest checkpoint, earlier than `step` if that update was
        skipped; 0: there is none. number: the signal's; None: another worker received it.
        """
        lost = ""
        if last_saved < step:
            newest = f"the newest checkpoint is of step {last_saved}"
            lost = (
                ", which was left out because its loss or gradient is not finite and is not saved: "
                + (newest if last_saved else "there is no checkpoint yet")
            )
        cause = _NAMES[signal.Signals(number)] if number else "a signal to another worker"
        super().__init__(f"stopped by {cause} at step {step}{lost}; run the same command to go on")
        self.step, self.last_saved = step, last_saved
        self.exit_code = _exit_code(number)


def _exit_code(number: int | None) -> int:
    return _INTERRUPTED if number == signal.SIGINT else EXIT_CODE


class Stoppable(Protocol):
    """The interface of a run for the thread that listens for signals."""

    def ask_to_stop(self) -> str:
        """Makes the run stop as soon as it can; returns what it has to finish first."""

    def newest_checkpoint(self) -> int:
        """Step of the newest checkpoint that is complete; 0: there is none."""


def interrupt_program(number: int, frame: FrameType | None) -> NoReturn:
    """Does the same as Python's own handler of Ctrl-C. It tells `StopRequest` that it runs in a
    program, which a second Ctrl-C may end, and not in a notebook.
    """
    raise KeyboardInterrupt


class StopRequest:
    """A context, in the main thread, in which SIGTERM and Ctrl-C make a run stop; a second signal
    ends the process.
    """

    # Python calls signal handlers only when TensorFlow returns, perhaps much later. Its native
    # handler, however, writes each signal's number to a socket at once. A thread of this context
    # reads that socket, and prints what the run has to finish first.

    def __init__(self) -> None:
        self._run: Stoppable | None = None
        self._previous: dict[int, Any] = {}  # What `signal.signal` returned: functions, numbers.
        self.number: int | None = None

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is not threading.main_thread():
            return self  # Python lets only the main thread handle signals.
        heard, self._written = socket.socketpair()
        self._written.setblocking(False)  # As `set_wakeup_fd` demands.
        self._previous_fd = signal.set_wakeup_fd(self._written.fileno(), warn_on_full_buffer=False)
        for number in _NAMES:
            if signal.getsignal(number) != signal.SIG_IGN:  # Background jobs ignore Ctrl-C.
                self._previous[number] = signal.signal(number, self._remember)
        self._thread = threading.Thread(target=self._listen, args=(heard,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        if self._previous:
            for number, handler in self._previous.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._previous_fd)
            self._written.close()
            self._thread.join()

    def watch(self, run: Stoppable) -> None:
        """Sets the run that signals stop; a signal that came before stops it, too."""
        self._run = run
        if self.number:
            self._stop(self.number)

    def arrived(self, strategy: tf.distribute.Strategy) -> bool:
        """Whether a signal came to this process or another worker, so that all stop at one step."""
        if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return self.number is not None
        return sum_over_workers(strategy, float(self.number is not None)) > 0

    def _remember(self, number: int, frame: FrameType | None) -> None:
        """The handler in the main thread."""
        is_second, self.number = self.number is not None, self.number or number
        previous = self._previous.get(number)
        if is_second and callable(previous) and previous is not interrupt_program:
            previous(number, frame)  # A notebook: the second Ctrl-C is a KeyboardInterrupt.

    def _listen(self, heard: socket.socket) -> None:
        """The thread's function: it returns when the context closes the other end of the socket."""
        count = 0
        with heard:
            while data := heard.recv(1):
                if data[0] in self._previous:
                    count += 1
                    self.number = self.number or data[0]
                    if count > 1:
                        self._end_at_once(data[0])
                    elif self._run:
                        self._stop(data[0])

    def _stop(self, number: int) -> None:
        assert self._run
        work = self._run.ask_to_stop()
        _say(
            f"{_NAMES[signal.Signals(number)]}: the run ends after {work}, and saves. A second "
            "signal ends it at once."
        )

    def _end_at_once(self, number: int) -> None:
        """Ends the process of a program; the main thread cannot while TensorFlow computes."""
        if number == signal.SIGINT and self._previous[number] is not interrupt_program:
            return
        step = self._run.newest_checkpoint() if self._run else 0
        newest = (
            f"the newest checkpoint is of step {step}" if step else "there is no checkpoint yet"
        )
        name = _NAMES[signal.Signals(number)]
        _say(f"{name} again: ended at once; {newest}; run the same command to go on")
        os._exit(_exit_code(number))  # Not sys.exit, which would end this thread alone.


def _say(line: str) -> None:
    """Prints a line above the progress bar; a closed output is not an error here."""
    with contextlib.suppress(OSError, ValueError):
        tqdm.write(line)
        print(end="", flush=True)
