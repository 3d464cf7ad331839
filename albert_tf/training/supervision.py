"""Runs a training program again when it dies, so that it goes on at its last checkpoint."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from albert_tf.training import failures, preemption

_USER_ERROR, _INTERRUPTED = 2, 130
_FINAL = (
    0,
    _USER_ERROR,
    _INTERRUPTED,
    preemption.EXIT_CODE,
)  # Again would not help, or is not wanted.
_PAUSE_SECONDS = 60.0


def run_supervised(main: Callable[[], None], max_failures: int) -> None:
    """Runs `main()`; with `max_failures` in processes of its own, of which so many may die.

    Ends the process with `preemption.EXIT_CODE` when training was stopped by SIGTERM, and with one
    of the exit codes in failures.py when the machine failed.
    """
    if max_failures:
        sys.exit(supervise(_this_command(), max_failures))
    try:
        main()
    except preemption.Preempted as notice:
        print(notice, flush=True)
        sys.exit(preemption.EXIT_CODE)
    except Exception as error:
        failure = failures.explain(error)
        if failure is None:
            raise
        print(f"error: {failure}", file=sys.stderr, flush=True)
        sys.exit(failure.exit_code)


def _this_command() -> list[str]:
    """This program with its flags."""
    spec = sys.modules["__main__"].__spec__
    program = ["-m", spec.name] if spec else [sys.argv[0]]
    return [sys.executable, *program, *sys.argv[1:]]


def supervise(
    command: Sequence[str], max_failures: int, pause_seconds: float = _PAUSE_SECONDS
) -> int:
    """Runs a command until it ends well or has failed too often.

    Args:
      command: a program that takes --max_failures and --overwrite.
      max_failures: how many times it is run again.
      pause_seconds: before it is run again after the disk was full; twice as long each time.

    Returns:
      Its last exit code.
    """
    attempt = [*command, "--max_failures=0"]
    num_failures = 0
    while True:
        code = _run(attempt)
        if code in _FINAL or num_failures == max_failures:
            return code if code >= 0 else 128 - code
        num_failures += 1
        pause = pause_seconds if code == failures.DISK_FULL else 0
        when = f" in {pause:.0f} seconds" if pause else ""
        print(
            f"training died (exit code {code}); failure {num_failures} of {max_failures} that are "
            f"allowed: going on at the last checkpoint{when}",
            file=sys.stderr,
            flush=True,
        )
        if pause:
            time.sleep(pause)
            pause_seconds *= 2
        attempt = [*command, "--max_failures=0", "--overwrite=false"]


def _run(command: Sequence[str]) -> int:
    """Exit code. SIGTERM is passed on, at any time, and is no failure; Ctrl-C reaches the child
    anyway.
    """
    process, is_stopped = None, False

    def stop(*unused: object) -> None:
        nonlocal is_stopped
        is_stopped = True
        if process:
            process.send_signal(signal.SIGTERM)

    handlers = {signal.SIGTERM: stop, signal.SIGINT: lambda *_: None}
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        process = subprocess.Popen(command)
        if is_stopped:
            process.send_signal(signal.SIGTERM)
        code = process.wait()
        # While the child starts it does not listen yet.
        return preemption.EXIT_CODE if is_stopped and code == -signal.SIGTERM else code
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
