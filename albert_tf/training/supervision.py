"""Runs a training program again when it dies, so that it goes on at its last checkpoint."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

from albert_tf.training import preemption

_USER_ERROR, _INTERRUPTED = 2, 130
_FINAL = (
    0,
    _USER_ERROR,
    _INTERRUPTED,
    preemption.EXIT_CODE,
)  # Again would not help, or is not wanted.


def run_supervised(main: Callable[[], None], max_failures: int) -> None:
    """Runs `main()`; with `max_failures` in processes of its own, of which so many may die.

    Ends the process with `preemption.EXIT_CODE` when training was stopped by SIGTERM.
    """
    if max_failures:
        sys.exit(supervise(_this_command(), max_failures))
    try:
        main()
    except preemption.Preempted as notice:
        print(notice, flush=True)
        sys.exit(preemption.EXIT_CODE)


def _this_command() -> list[str]:
    """This program with its flags."""
    spec = sys.modules["__main__"].__spec__
    program = ["-m", spec.name] if spec else [sys.argv[0]]
    return [sys.executable, *program, *sys.argv[1:]]


def supervise(command: Sequence[str], max_failures: int) -> int:
    """Runs a command until it ends well or has failed too often.

    Args:
      command: a program that takes --max_failures and --overwrite.
      max_failures: how many times it is run again.

    Returns:
      Its last exit code.
    """
    attempt = [*command, "--max_failures=0"]
    failures = 0
    while True:
        code = _run(attempt)
        if code in _FINAL or failures == max_failures:
            return code if code >= 0 else 128 - code
        failures += 1
        print(
            f"training died (exit code {code}); failure {failures} of {max_failures} that are "
            "allowed: going on at the last checkpoint",
            file=sys.stderr,
            flush=True,
        )
        attempt = [*command, "--max_failures=0", "--overwrite=false"]


def _run(command: Sequence[str]) -> int:
    """Exit code; SIGTERM is passed on, Ctrl-C reaches the child anyway."""
    process = subprocess.Popen(command)
    handlers = {
        signal.SIGTERM: lambda *_: process.send_signal(signal.SIGTERM),
        signal.SIGINT: lambda *_: None,
    }
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        return process.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
