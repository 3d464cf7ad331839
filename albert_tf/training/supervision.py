"""Supervision of a training program, which is run again when it dies, and then resumes."""

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

from albert_tf.training import failures, preemption, run_folder

_USER_ERROR, _INTERRUPTED = 2, 130
# Exit codes after which another run would not help, or is not wanted.
_FINAL = (0, _USER_ERROR, _INTERRUPTED, preemption.EXIT_CODE)
_PAUSE_SECONDS = 60.0
_POLL_SECONDS = 0.2


def run_supervised(main: Callable[[], None], max_failures: int, run_dir: str) -> None:
    """Runs `main()`, in this process or under supervision.

    Ends the process with `preemption.EXIT_CODE` when training was stopped by SIGTERM, with 130 when
    it was by Ctrl-C, and with one of the exit codes in failures.py when the machine failed.

    Args:
      main: trains in `run_dir`.
      max_failures: 0: `main` is called. Otherwise this program is run in another process, again
        after each of so many failures.
      run_dir: folder of the run.
    """
    if max_failures:
        sys.exit(supervise(_this_command(), max_failures, run_dir))
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, preemption.interrupt_program)
    try:
        main()
    except preemption.Preempted as notice:
        print(notice, flush=True)
        gc.freeze()  # Or Python looks through all that was imported before it ends: seconds.
        sys.exit(notice.exit_code)
    except Exception as error:
        failure = failures.explain(error)
        if failure is None:
            raise
        print(f"error: {failure}", file=sys.stderr, flush=True)
        sys.exit(failure.exit_code)


def _this_command() -> list[str]:
    """The command line that runs this program with its flags."""
    spec = sys.modules["__main__"].__spec__
    program = ["-m", spec.name] if spec else [sys.argv[0]]
    return [sys.executable, *program, *sys.argv[1:]]


def supervise(
    command: Sequence[str],
    max_failures: int,
    run_dir: str,
    pause_seconds: float = _PAUSE_SECONDS,
) -> int:
    """Runs a command until it ends well or has failed too often, or until SIGTERM comes.

    Args:
      command: a program that takes --max_failures and --overwrite.
      max_failures: how many times it is run again.
      run_dir: folder of its run. --overwrite holds until it has begun a new run there.
      pause_seconds: between a failure of its storage and the next run; doubled each time.

    Returns:
      Its last exit code.
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
                f"training died (exit code {code}); failure {num_failures} of {max_failures} that "
                f"are allowed: going on at the last checkpoint{when}",
                file=sys.stderr,
                flush=True,
            )
            if pause:
                if (stopped := signals.pause(pause)) is not None:
                    return stopped
                pause_seconds *= 2
            if _version_of_run(run_dir) not in (old_run, None):
                attempt = [*command, "--max_failures=0", "--overwrite=false"]


def _version_of_run(run_dir: str) -> int | None:
    """Time of the last start of the run in a folder, in nanoseconds of the folder's own clock; None
    without a run.
    """
    path = os.path.join(run_dir, run_folder.RUN_FILE)
    return tf.io.gfile.stat(path).mtime_nsec if tf.io.gfile.exists(path) else None


class _Signals:
    """A context that passes SIGTERM on to the command that runs, and remembers it. Ctrl-C reaches
    the command anyway.

    Attributes:
      stopped: the exit code that says which signal came; None: none came.
    """

    def __init__(self) -> None:
        self.stopped: int | None = None
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
        """Runs a command; returns its exit code. SIGTERM is no failure."""
        self._process = subprocess.Popen(command)
        if self.stopped:
            self._process.send_signal(signal.SIGTERM)
        code = self._process.wait()
        self._process = None
        # While the child starts it does not listen yet.
        return preemption.EXIT_CODE if self.stopped and code == -signal.SIGTERM else code

    def pause(self, seconds: float) -> int | None:
        """Waits, and returns `stopped`; ends at once when a signal comes."""
        end = time.monotonic() + seconds
        # Not threading.Event: its lock is not for handlers, which run in this same thread.
        while self.stopped is None and time.monotonic() < end:
            time.sleep(min(_POLL_SECONDS, seconds))
        return self.stopped
