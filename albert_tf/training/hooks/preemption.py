"""SIGTERM and Ctrl-C: a run is saved and ends, with an exit code that means "run me again"."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from types import FrameType
from typing import Any, NoReturn

import tensorflow as tf
from tqdm import tqdm

from albert_tf.models.losses import Ratio
from albert_tf.training import starts
from albert_tf.training.checkpoint_files import checkpoints_dir, with_index
from albert_tf.training.hooks.base import Hook, Run, Stop
from albert_tf.training.hooks.checkpoints import Checkpoints
from albert_tf.training.hooks.figures import Evaluation
from albert_tf.training.strategy import sum_over_workers
from data_pipeline.files import atomic_files

EXIT_CODE = 75  # EX_TEMPFAIL of sysexits.h: run the same command again.
_INTERRUPTED = 130  # The code that shells report after Ctrl-C.
_NAMES = {signal.SIGTERM: "SIGTERM", signal.SIGINT: "Ctrl-C"}
# The sums of a run that was stopped between two reports; the next start continues with them.
_TOTALS = "partial_report.json"


class Preempted(Exception):
    """Raised when a signal ends training at a step; the program exits with its `exit_code`."""

    def __init__(self, step: int, last_saved: int, number: int | None = signal.SIGTERM) -> None:
        """last_saved: step of the newest checkpoint, earlier than `step` if that update was
        skipped; 0: there is none. number: the signal's; None: another worker received it.
        """
        lost = ""
        if last_saved < step:
            lost = (
                ", which was left out because its loss or gradient is not finite and is not saved: "
                f"{_newest(last_saved)}"
            )
        cause = _NAMES[signal.Signals(number)] if number else "a signal to another worker"
        super().__init__(f"stopped by {cause} at step {step}{lost}; run the same command to go on")
        self.step, self.last_saved = step, last_saved
        self.exit_code = _exit_code(number)


def _newest(step: int) -> str:
    """A clause about the newest checkpoint; step 0: there is none."""
    return f"the newest checkpoint is of step {step}" if step else "there is no checkpoint yet"


def _exit_code(number: int | None) -> int:
    return _INTERRUPTED if number == signal.SIGINT else EXIT_CODE


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
        self._run: Preemption | None = None
        self._previous: dict[int, Any] = {}  # What `signal.signal` returned: functions, numbers.
        self.number: int | None = None

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is not threading.main_thread():
            return self  # Python lets only the main thread handle signals.
        receiver, self._sender = socket.socketpair()
        self._sender.setblocking(False)  # As `set_wakeup_fd` demands.
        self._previous_fd = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        for number in _NAMES:
            if signal.getsignal(number) != signal.SIG_IGN:  # Background jobs ignore Ctrl-C.
                self._previous[number] = signal.signal(number, self._remember)
        self._thread = threading.Thread(target=self._listen, args=(receiver,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        if self._previous:
            for number, handler in self._previous.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._previous_fd)
            self._sender.close()
            self._thread.join()

    def watch(self, run: Preemption) -> None:
        """Sets the run that signals stop; a signal that came before stops it, too."""
        self._run = run
        if self.number:
            self._stop(self.number)

    def arrived(self, strategy: tf.distribute.Strategy) -> bool:
        """Whether a signal came to this process or another worker, so that all stop at one step."""
        if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return self.number is not None
        number_of_signals = tf.constant(float(self.number is not None))
        return float(sum_over_workers(strategy, number_of_signals)) > 0

    def _remember(self, number: int, frame: FrameType | None) -> None:
        """The handler in the main thread."""
        is_second, self.number = self.number is not None, self.number or number
        previous = self._previous.get(number)
        if is_second and callable(previous) and previous is not interrupt_program:
            previous(number, frame)  # A notebook: the second Ctrl-C is a KeyboardInterrupt.

    def _listen(self, receiver: socket.socket) -> None:
        """The thread's function: it returns when the context closes the other end of the socket."""
        count = 0
        with receiver:
            while data := receiver.recv(1):
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
        newest = _newest(self._run.newest_checkpoint() if self._run else 0)
        name = _NAMES[signal.Signals(number)]
        _say(f"{name} again: ended at once; {newest}; run the same command to go on")
        os._exit(_exit_code(number))  # Not sys.exit, which would end this thread alone.


def _say(line: str) -> None:
    """Prints a line above the progress bar; a closed output is not an error here."""
    with contextlib.suppress(OSError, ValueError):
        tqdm.write(line)
        print(end="", flush=True)


class Preemption(Hook):
    """Ends the run at the first stop after a signal, which lets only the current update finish."""

    def __init__(
        self, run: Run, request: StopRequest, evaluation: Evaluation, checkpoints: Checkpoints
    ) -> None:
        self._run, self._stepper, self._state = run, run.stepper, run.state
        self._request, self._evaluation, self._checkpoints = request, evaluation, checkpoints
        self._first = run.state.step
        self._call = run.state.step, time.monotonic()  # Of TensorFlow's last call.
        self._seconds: float | None = None  # The last duration of an update.
        request.watch(self)

    def before(self, step: int) -> None:
        """Records when TensorFlow is called."""
        self._call = step, time.monotonic()

    def after(self, stop: Stop) -> None:
        """After a signal, requests a checkpoint and ends the run, unless this was its last step."""
        if self._call[0] > self._first:  # The first call compiles.
            self._seconds = stop.seconds
        # Before the checkpoint of this step: without it the totals are ignored, so that a kill
        # between the two loses nothing.
        if stop.is_early and stop.is_sound and self._run.is_chief:
            # float32 values survive JSON bit by bit:
            # {"step": 7, "totals": {"masked_lm_loss": [118.52069091796875, 14.0]}}.
            totals = {name: list(map(float, ratio)) for name, ratio in stop.outcome.totals.items()}
            record = {"step": stop.step, "totals": totals}
            atomic_files.write_json(os.path.join(self._run.run_dir, _TOTALS), record)
        # All workers take part in this check, so that they stop at the same step.
        if stop.is_early or self._request.arrived(self._stepper.strategy):
            stop.needs_checkpoint = True
            if stop.step < self._run.settings.num_train_steps:
                stop.end = lambda: self._end(stop.step)

    def _end(self, step: int) -> None:
        raise Preempted(step, self._checkpoints.last_saved, self._request.number)

    # The thread that listens for signals calls these two while the main thread is in TensorFlow.

    def ask_to_stop(self) -> str:
        """Ends the updates; returns the work that is finished first, with its duration if known."""
        self._stepper.stop()
        step, (first, began) = self._state.step, self._call
        if self._evaluation.is_under_way:
            return f"the evaluation at step {step}{_about(self._evaluation.seconds)}"
        update = f"update {min(step + 1, self._run.settings.num_train_steps)}"
        if step == self._first:
            return f"{update}, which is compiled first"
        if step > first > self._first:
            self._seconds = (time.monotonic() - began) / (step - first)
        return f"{update}{_about(self._seconds)}"

    def newest_checkpoint(self) -> int:
        """Step of the newest checkpoint that is complete; 0: there is none."""
        return max(with_index(checkpoints_dir(self._run.run_dir)), default=0)


def _about(seconds: float | None) -> str:
    return "" if seconds is None else f" (about {max(seconds, 0.1):.1f} seconds)"


def read_totals(run: Run) -> dict[str, Ratio]:
    """The sums that a run continues with: zeros unless its last start ended between reports."""
    none, path = run.stepper.no_totals(), os.path.join(run.run_dir, _TOTALS)
    if not tf.io.gfile.exists(path):
        return none
    remedy = "Delete it to average only later updates in the next row of metrics.csv"
    record = starts.read_run_json(path, remedy)
    if record["step"] != run.state.step or record["totals"].keys() != none.keys():
        return none
    return {
        name: Ratio(*(tf.constant(part, tf.float32) for part in parts))
        for name, parts in record["totals"].items()
    }
