"""Errors meant for the user, and the wrapper that turns them into one line and exit code 2.

Library code raises `UserError` (or FileNotFoundError) with one complete sentence: what was
expected, what was received, what to do next. Binaries start with `run_binary(main)`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence

import absl.logging
from absl import app, flags

EXIT_CODE = 2


class UserError(ValueError):
    """A mistake that the user can repair; the message is a complete sentence."""


def describe(error: BaseException) -> str:
    """One line that says what went wrong, for an exception of any kind."""
    text = str(getattr(error, "message", None) or error).strip()
    first_line = text.splitlines()[0] if text else ""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return first_line or type(error).__name__


def is_user_error(error: BaseException, more: Sequence[type] = ()) -> bool:
    """True for errors in files, flags and data; false for errors in the program."""
    import tensorflow as tf

    kinds = (
        UserError,
        OSError,
        flags.Error,
        tf.errors.NotFoundError,
        tf.errors.DataLossError,
        tf.errors.PermissionDeniedError,
        tf.errors.AlreadyExistsError,
        tf.errors.ResourceExhaustedError,
        *more,
    )
    return isinstance(error, kinds)


def _fail(message: str) -> None:
    program = sys.argv[0].rpartition("/")[2] or "program"
    print(f"{program}: error: {message}", file=sys.stderr, flush=True)
    sys.exit(EXIT_CODE)


def _parse_flags(argv: Sequence[str]) -> list[str]:
    for argument in argv[1:]:
        if argument in ("--help", "-help", "--helpfull", "--helpshort"):
            return app.parse_flags_with_usage(argv)
    try:
        return flags.FLAGS(argv)
    except flags.Error as error:
        _fail(" ".join(str(error).split()) + " (--help lists the flags)")
        raise


def run_binary(main: Callable[[], None], user_errors: Sequence[type] = ()) -> None:
    """Parses the flags, runs `main()` and ends the process.

    Args:
      main: function without arguments; reads its flags from absl.
      user_errors: more exception classes whose message is meant for the user.

    A user's error is printed as `program: error: message` on stderr, with exit code 2; anything
    else is a fault of the program and keeps its traceback.
    """

    def wrapped(argv: Sequence[str]) -> None:
        if len(argv) > 1:
            _fail(f"unexpected argument {argv[1]!r}: options are written --name=value")
        try:
            main()
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            sys.exit(130)
        except Exception as error:
            if not is_user_error(error, user_errors):
                raise
            # What was written for the user is shown whole: it may list several findings.
            whole = isinstance(error, (UserError, *user_errors))
            _fail(str(error) if whole else describe(error))

    # TensorFlow's own notes (which devices it found, each save of a checkpoint) would hide what the
    # program has to say.
    logging.getLogger("tensorflow").setLevel(logging.WARNING)
    flags.FLAGS.set_default("verbosity", absl.logging.WARNING)
    app.run(wrapped, flags_parser=_parse_flags)
