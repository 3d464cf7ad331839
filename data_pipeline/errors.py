"""Errors meant for the user, which end a program with one line and exit code 2.

Library code raises `UserError` (or FileNotFoundError) with one complete sentence: what was
expected, what was received, what to do next. See `command_line.run_binary`.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import sys
from collections.abc import Iterator


class UserError(ValueError):
    """A mistake that the user can repair; the message is a complete sentence."""


@functools.cache
def warn_once(message: str) -> None:
    """Prints a warning on stderr, once, however many workers and calls read the same file."""
    if multiprocessing.parent_process() is None:
        print(f"warning: {message}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def needs_extra(extra: str, purpose: str) -> Iterator[None]:
    """The place where packages are imported that only an extra of this project installs.

    Args:
      extra: its name in pyproject.toml, such as "serving".
      purpose: what needs them, as the beginning of a sentence.

    Raises:
      UserError: one cannot be imported.
    """
    try:
        yield
    except ImportError as error:
        raise UserError(
            f"{purpose} needs a package that cannot be imported ({error}). Install it: "
            f'pip install "albert-tf[{extra}]"'
        ) from None


def message_of(error: BaseException) -> str:
    """An exception of any kind in one line: path and reason, the first line, or its class."""
    text = str(getattr(error, "message", None) or error).strip()
    first_line = text.splitlines()[0] if text else ""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return first_line or type(error).__name__


# TensorFlow's errors about files, data and memory.
_TENSORFLOW_KINDS = (
    "NotFoundError",
    "DataLossError",
    "PermissionDeniedError",
    "AlreadyExistsError",
    "ResourceExhaustedError",
)


def is_user_error(error: BaseException) -> bool:
    """True for errors in files, flags and data; false for errors in the program."""
    kinds: tuple[type[BaseException], ...] = (UserError, OSError)
    tensorflow = sys.modules.get("tensorflow")  # An error of TensorFlow's needs it loaded.
    if tensorflow:
        kinds += tuple(getattr(tensorflow.errors, name) for name in _TENSORFLOW_KINDS)
    return isinstance(error, kinds)
