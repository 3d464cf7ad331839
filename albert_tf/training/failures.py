"""Failures of the machine, after which the same command continues the run."""

from __future__ import annotations

import errno
import os
import re

import tensorflow as tf

# Exit codes of sysexits.h: I/O error, service unavailable. --max_failures restarts after them.
STORAGE_FAILED, WORKER_LOST = 74, 69

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_NO_ANSWER = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ECONNRESET)
_OF_TENSORFLOW = re.compile(r"\{\{.*?\}\}\s*|\s*\[Op:.*?\]")
_OF_OTHER_WORKERS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
)
_SIGNS_OF_A_LOSS = ("Collective ops is aborted", "remote target /job:")


class MachineFailure(Exception):
    """A failure of the machine, with a message on cause and remedy, and an exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def explain(error: Exception) -> MachineFailure | None:
    """The failure of the machine that caused an error; None for an error of another cause."""
    text = str(getattr(error, "message", None) or error)
    if isinstance(error, _OF_OTHER_WORKERS) and any(sign in text for sign in _SIGNS_OF_A_LOSS):
        return MachineFailure(
            "another worker is gone (it ended, was killed, or cannot be reached). Run the same "
            "command on every worker again: training resumes from the last complete checkpoint.",
            WORKER_LOST,
        )
    first_line = _OF_TENSORFLOW.sub("", (text.strip().splitlines() or [""])[0])
    if _is_one_of(_NO_ROOM, error, text):
        return MachineFailure(
            f"the disk is full: {first_line}. Make room and run the same command again: it resumes "
            "from the last complete checkpoint.",
            STORAGE_FAILED,
        )
    if _is_one_of(_NO_ANSWER, error, text):
        return MachineFailure(
            f"a disk or a file server failed: {first_line}. When it works again, run the same "
            "command: it resumes from the last complete checkpoint.",
            STORAGE_FAILED,
        )
    return None


def _is_one_of(numbers: tuple[int, ...], error: Exception, text: str) -> bool:
    """Whether an error is the operating system's with one of these numbers."""
    # TensorFlow's errors keep only the text of an error number.
    if isinstance(error, tf.errors.OpError):
        return any(os.strerror(number) in text for number in numbers)
    return isinstance(error, OSError) and error.errno in numbers
