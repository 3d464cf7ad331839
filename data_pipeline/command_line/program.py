"""Runs a program: parses its flags, calls its `main`, and prints a user's error in one line."""

from __future__ import annotations

import difflib
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

import absl.logging
from absl import app
from absl.flags import Error, UnrecognizedFlagError

from data_pipeline.command_line import flag_files, flags
from data_pipeline.command_line.help import help_text
from data_pipeline.errors import UserError, is_user_error, message_of, name_flags
from data_pipeline.files import storage

EXIT_CODE = 2
_BROKEN_PIPE = 141  # The exit code that shells report for a program ended by SIGPIPE.
_REMEDY = "Check that the path exists, that you may read and write there, and that there is room."
_HELP = ("--help", "-help", "--helpshort", "-h")
_FULL_HELP = ("--helpfull", "-helpfull")


def run_binary(main: Callable[[], None]) -> None:
    """Parses the flags, runs `main()` and ends the process.

    A user's error is printed as `program: error: message` on stderr, with exit code 2; any other
    error is a bug and keeps its traceback. If stdout is closed early (`| head`), the program ends
    silently with code 141.
    """

    def wrapped(argv: Sequence[str]) -> None:
        # TensorFlow's Python code logs the beginning of each save of a checkpoint.
        absl.logging.set_verbosity(absl.logging.WARNING)
        # Several runs or splits in one process trigger advice, as each has its own function.
        logging.getLogger("tensorflow").addFilter(
            lambda record: "triggered tf.function retracing" not in record.getMessage()
        )
        try:
            _check_paths()
            main()
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            sys.exit(130)
        except Exception as error:
            if not is_user_error(error):
                raise
            if isinstance(error, BrokenPipeError):
                print(flush=True)  # Fails again if the closed pipe is stdout.
            # The message of a UserError is shown in full: it may list several problems.
            if isinstance(error, UserError):
                _fail(_with_flag(str(error)))
            _fail(f"{_with_flag(message_of(error))}. {_REMEDY}")

    name_flags()
    flags.group("This command")
    flags.DEFINE_bool("print_flags", False, "Print the value of every flag as JSON, and end.")
    try:
        try:
            app.run(wrapped, flags_parser=_parse)
        finally:
            sys.stdout.flush()  # Handles a closed pipe here, not in Python's flush at exit.
    except BrokenPipeError:  # The reader of the output, such as `head`, has stopped reading.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # For the flush at exit.
        sys.exit(_BROKEN_PIPE)


def _fail(message: str) -> NoReturn:
    folder, _, program = sys.argv[0].rpartition("/")
    if program == "__main__.py":  # A package run as `python -m package`.
        program = folder.rpartition("/")[2]
    program = program or "program"
    print(f"{program}: error: {message}", file=sys.stderr, flush=True)
    sys.exit(EXIT_CODE)


def _parse(argv: Sequence[str]) -> list[str]:
    """Reads the flags; ends the process for --help, --print_flags and mistakes."""
    if {*_HELP, *_FULL_HELP} & set(argv[1:]):
        print(help_text(sys.modules["__main__"], full=bool(set(_FULL_HELP) & set(argv[1:]))))
        sys.exit()
    try:
        rest = parse_flags(argv)
    except UserError as error:
        _fail(str(error))
    if flags.FLAGS.print_flags:
        print(json.dumps(flags.resolved(), indent=2))
        sys.exit()
    return rest


def parse_flags(argv: Sequence[str]) -> list[str]:
    """Sets the flags, and returns the program's name. A missing or unknown flag, a bad value, or a
    bad flag file is a UserError that names the flag and its line in the flag file.
    """
    arguments = flag_files.expand(argv[1:])
    try:
        rest = flags.FLAGS([argv[0], *(argument.text for argument in arguments)])
    except Error as error:
        raise UserError(_explain(error, arguments)) from None
    if len(rest) > 1:
        raise UserError(f"unexpected argument {rest[1]!r}: options are written --name=value")
    missing = [
        f"--{flag.name} is missing: {flag.help}"
        for flag in flags.defined()
        if flag.required and not flag.value
    ]
    if missing:
        raise UserError(f"{' '.join(missing)} (--help lists the flags)")
    _check_encoding()
    return rest


def _explain(error: Exception, arguments: Sequence[flag_files.Argument]) -> str:
    """absl's message, with the flag's help text and its line in the flag file."""
    message = " ".join(str(error).split()).removeprefix("flag ")
    if isinstance(error, UnrecognizedFlagError):
        name = error.flagname
        known = [flag.name for flag in flags.defined()]
        similar = difflib.get_close_matches(name, known, n=1)
        message = f"--{name} is unknown." + "".join(f" Did you mean --{n}?" for n in similar)
    else:
        found = re.search(r"--(\w+)", message)
        name = found[1] if found else ""
        message = re.sub(r"\('Non-boolean argument.*\)", "expected true or false", message)
        if name in flags.FLAGS:
            if isinstance(value := flags.FLAGS[name].value, list):
                message = message.replace(str(value), ",".join(map(str, value)))
            message = f"{message.rstrip('.')}. {flags.FLAGS[name].help}"
    places = [argument.place for argument in arguments if argument.sets(name)]
    place = f"{places[-1]}: " if places and places[-1] else ""
    return f"{place}{message} (--help lists the flags)"


def _check_encoding() -> None:
    # Python decodes bytes of arguments that are not UTF-8 as unpaired surrogates, which cannot be
    # printed or written.
    for flag in flags.defined():
        try:
            str(flag.value).encode("utf-8")
        except UnicodeEncodeError:
            raise UserError(f"--{flag.name} contains bytes that are not UTF-8.") from None


def _check_paths() -> None:
    """Raises an error for the first path in a flag that is not reachable."""
    for flag in flags.defined():
        if flag.may_name_paths and "/" in str(flag.value or ""):
            paths = flag.value if isinstance(flag.value, list) else flag.value.split(",")
            for path in map(str.strip, paths):
                try:
                    storage.check_reachable(path)
                except UserError as error:
                    raise UserError(f"--{flag.name}={path}: {error}") from None


def _with_flag(message: str) -> str:
    """Prefixes a message that names no flag with the flag whose path it mentions: "--data=x/y:
    x/y/a: No such file".
    """
    if re.search(r"(^|\s)--\w", message):
        return message
    values = {flag.name: flag.value for flag in flags.defined() if isinstance(flag.value, str)}
    paths = {name: value for name, value in values.items() if "/" in value}
    folder = message.partition(": ")[0] + "/"  # TensorFlow may name a folder above a flag's path.
    # The longest path first: with --data=x/y and --output_dir=x/y/z, x/y/z/a matches the second.
    for name, path in sorted(paths.items(), key=lambda item: -len(item[1])):
        is_named = re.search(rf"(?<![\w/.]){re.escape(path)}(?![\w-])", message)
        if is_named or path.startswith(folder):
            return f"--{name}={path}: {message}"
    return message
