"""Supervision of a training program: when it dies, it is restarted, and resumes its run."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from albert_tf.training import failures, run_folder
from albert_tf.training.hooks import preemption

_USER_ERROR, _INTERRUPTED = 2, 130
# Exit codes after which a restart would not help, or is not wanted.
_FINAL = (0, _USER_ERROR, _INTERRUPTED, preemption.EXIT_CODE)
_PAUSE_SECONDS = 60.0
_POLL_SECONDS = 0.2


def run_supervised(main: Callable[[], None], max_failures: int, run_dir: str) -> None:
    """Runs `main()`, which trains in `run_dir`. With `max_failures`, runs this program in a process
    of its own instead, and restarts it after each failure, up to that number.

    The process ends with `preemption.EXIT_CODE` after SIGTERM, with 130 after Ctrl-C, and with one
    of the exit codes in failures.py when the machine failed.
    """
    if max_failures:
        spec = sys.modules["__main__"].__spec__
        program = ["-m", spec.name] if spec else [sys.argv[0]]
        command = [sys.executable, *program, *sys.argv[1:]]
        sys.exit(supervise(command, max_failures, run_dir))
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, preemption.interrupt_program)
    try:
        main()
    except preemption.Preempted as notice:
        print(notice, flush=True)
        gc.freeze()  # Skips garbage collection at exit, which takes seconds.
        sys.exit(notice.exit_code)
    except Exception as error:
        failure = failures.explain(error)
        if failure is None:
            raise
        print(f"error: {failure}", file=sys.stderr, flush=True)
        sys.exit(failure.exit_code)


def supervise(
    command: Sequence[str], max_failures: int, run_dir: str, pause_seconds: float = _PAUSE_SECONDS
) -> int:
    """Runs a command until it succeeds, has failed too often, or SIGTERM comes; returns its last
    exit code. After a storage failure it waits for `pause_seconds`, doubled each time.
    """
    old_run = _version_of_run(run_dir)
    attempt = [*command, "--max_failures=0"]
    num_failures = 0
    with _Signals() as signals:
        while True:
            code = signals.run(attempt)
            if code in _FINAL or num_failures == max_failures:
                return code if code >= 0 else 128 - code
            if signals.stopped is not None:
                return signals.stopped
            num_failures += 1
            pause = pause_seconds if code == failures.STORAGE_FAILED else 0
            when = f" in {pause:.0f} seconds" if pause else ""
            print(
                f"training died (exit code {code}); failure {num_failures} of {max_failures} "
                f"allowed: resuming from the last checkpoint{when}",
                file=sys.stderr,
                flush=True,
            )
            if pause:
                if (stopped := signals.pause(pause)) is not None:
                    return stopped
                pause_seconds *= 2
            # --overwrite applies until the command has begun a new run, which later starts resume.
            if _version_of_run(run_dir) not in (old_run, None):
                attempt = [*command, "--max_failures=0", "--overwrite=false"]


def _version_of_run(run_dir: str) -> int | None:
    """Time of the last start of the run in a folder, in nanoseconds by the clock of the folder's
    file system; None without a run.
    """
    path = os.path.join(run_dir, run_folder.RUN_FILE)
    return tf.io.gfile.stat(path).mtime_nsec if tf.io.gfile.exists(path) else None


class _Signals:
    """A context that forwards SIGTERM to the running command, and remembers it; terminals send
    Ctrl-C to both processes.
    """

    def __init__(self) -> None:
        self.stopped: int | None = None  # The exit code for the signal that came.
        self._process: subprocess.Popen | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        handlers = {signal.SIGTERM: self._stop, signal.SIGINT: self._interrupt}
        self._previous = {number: signal.signal(number, one) for number, one in handlers.items()}
        return self

    def __exit__(self, *unused: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _stop(self, *unused: object) -> None:
        self.stopped = preemption.EXIT_CODE
        if self._process:
            self._process.send_signal(signal.SIGTERM)

    def _interrupt(self, *unused: object) -> None:
        self.stopped = _INTERRUPTED

    def run(self, command: Sequence[str]) -> int:
        """Runs a command; returns its exit code. SIGTERM is not a failure."""
        self._process = subprocess.Popen(command)
        if self.stopped:
            self._process.send_signal(signal.SIGTERM)
        code = self._process.wait()
        self._process = None
        # While the child starts, it does not handle SIGTERM yet.
        return preemption.EXIT_CODE if self.stopped and code == -signal.SIGTERM else code

    def pause(self, seconds: float) -> int | None:
        """Waits, and returns `stopped`; ends at once when a signal comes."""
        end = time.monotonic() + seconds
        # Not threading.Event: its lock is not safe in signal handlers, which run in this thread.
        while self.stopped is None and time.monotonic() < end:
            time.sleep(min(_POLL_SECONDS, seconds))
        return self.stopped
