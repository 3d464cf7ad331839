"""Errors meant for the user, which end a program with one line and exit code 2.

Library code raises `UserError` (or FileNotFoundError) with one complete sentence: what was
expected, what was received, what to do next. See `command_line.run_binary`.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import multiprocessing
import os
import re
import sys
from collections.abc import Iterator

_A_FLAG = re.compile(r"(?<![\w-])--(?=[a-z]\w)")
_names_flags = False


def name_flags() -> None:
    """Makes errors name flags (--seed), as users of a program do, instead of arguments (`seed`)."""
    global _names_flags
    _names_flags = True


class UserError(ValueError):
    """A mistake that the user can repair. The message is a complete sentence, written with flags;
    outside the programs it names arguments instead: `--seed=-1` becomes `seed=-1`.
    """

    def __str__(self) -> str:
        message = super().__str__()
        # A message that quotes a whole command keeps its flags.
        return message if _names_flags or "python -m " in message else _A_FLAG.sub("", message)


@functools.cache
def warn_once(message: str) -> None:
    """Prints a warning on stderr once, even if several workers or calls read the same file."""
    if multiprocessing.parent_process() is None:
        print(f"warning: {message}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def needs_extra(extra: str, purpose: str) -> Iterator[None]:
    """A context for imports of packages that only an extra of this project installs, such as
    "serving". A failed import is a UserError. `purpose` says what needs the packages, as the
    beginning of a sentence.
    """
    try:
        yield
    except ImportError as error:
        raise UserError(
            f"{purpose} needs a package that cannot be imported ({error}). Install it: "
            f'pip install "albert-tf[{extra}]"'
        ) from None


# Details that TensorFlow adds to a message: the names of its operations and of temporary files, as
# in "model/x.data-00000-of-00001.tempstate123; No space left on device".
_OPERATION = re.compile(r"\{\{.*?\}\}\s*|\s*\[Op:.*")
_PARTIAL = re.compile(r"(\.[0-9a-f]{32})?\.partial$")
_UNFINISHED = re.compile(r"(\S*)/\S*\.tempstate\d+")
_NO_ANSWER = re.compile(r"Error executing an HTTP request: (?:.*error details: )?(.*)")
_REMOTE_PATH = re.compile(r"\w+://[^\s)']+")


def message_of(error: BaseException) -> str:
    """Any exception in one line: its path and reason, its first line, or the name of its class."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return _of_the_system(os.fsdecode(error.filename), error.strerror)
    text = str(getattr(error, "message", None) or error).strip()
    first_line = text.splitlines()[0] if text else ""
    if no_answer := _NO_ANSWER.search(first_line):
        remote = _REMOTE_PATH.search(text, no_answer.end())
        return f"{remote[0] if remote else 'the storage'} cannot be reached: {no_answer[1]}"
    shown = _UNFINISHED.sub(r"\1", _OPERATION.sub("", first_line)).rstrip(".")
    path, _, reason = shown.rpartition("; ")
    if path and reason in _OF_THE_SYSTEM:
        return _of_the_system(path, reason)
    return shown or type(error).__name__


def _of_the_system(path: str, reason: str) -> str:
    """The message for an operating system error on a path: "a/b: No such file or directory"."""
    path = _PARTIAL.sub("", path)
    if reason == os.strerror(errno.EISDIR):
        return f"{path} is a folder where a file should be: move it away"
    return f"{path}: {reason}"


# TensorFlow's errors about files, data and memory.
_TENSORFLOW_KINDS = (
    "NotFoundError",
    "DataLossError",
    "PermissionDeniedError",
    "AlreadyExistsError",
    "ResourceExhaustedError",
)


# Texts of other TensorFlow errors that a path causes: there is no file system or network for it, or
# the operating system reports an error, as in "a/b; Is a directory".
_OF_A_PATH = re.compile("File system scheme|Error executing an HTTP request|is not a directory")
_OF_THE_SYSTEM = frozenset(map(os.strerror, errno.errorcode))


def is_user_error(error: BaseException) -> bool:
    """True for errors in files, flags and data; false for errors in the program."""
    if isinstance(error, (UserError, OSError)):
        return True
    tensorflow = sys.modules.get("tensorflow")  # Only then can it be a TensorFlow error.
    if not tensorflow or not isinstance(error, tensorflow.errors.OpError):
        return False
    kinds = tuple(getattr(tensorflow.errors, name) for name in _TENSORFLOW_KINDS)
    is_of_the_system = _OPERATION.sub("", error.message).rpartition("; ")[2] in _OF_THE_SYSTEM
    return isinstance(error, kinds) or is_of_the_system or bool(_OF_A_PATH.search(error.message))
