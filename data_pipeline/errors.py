"""Errors meant for the user, which end a program with one line and exit code 2.

Library code raises `UserError` (or FileNotFoundError) with one complete sentence: what was
expected, what was received, what to do next. See `command_line.run_binary`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


class UserError(ValueError):
    """A mistake that the user can repair; the message is a complete sentence."""


def describe(error: BaseException) -> str:
    """One line that says what went wrong, for an exception of any kind."""
    text = str(getattr(error, "message", None) or error).strip()
    first_line = text.splitlines()[0] if text else ""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return first_line or type(error).__name__


# Of TensorFlow's errors those about files, data and memory.
_TENSORFLOW_KINDS = (
    "NotFoundError",
    "DataLossError",
    "PermissionDeniedError",
    "AlreadyExistsError",
    "ResourceExhaustedError",
)


def is_user_error(error: BaseException, more: Sequence[type] = ()) -> bool:
    """True for errors in files, flags and data; false for errors in the program."""
    kinds = (UserError, OSError, *more)
    tensorflow = sys.modules.get("tensorflow")  # Where it was never loaded, nothing is of it.
    if tensorflow:
        kinds += tuple(getattr(tensorflow.errors, name) for name in _TENSORFLOW_KINDS)
    return isinstance(error, kinds)
