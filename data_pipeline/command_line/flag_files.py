"""Expands flag files in command lines, so that an error can say where a flag was given."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Sequence

from data_pipeline.errors import UserError
from data_pipeline.files import shared_files, storage

_FLAG = re.compile(r"--?[A-Za-z]\w*(=.*)?")
_EXAMPLE = re.compile(r"(--?[A-Za-z]\w*=)example:(.+)")
_FLAG_FILE = re.compile(r"--?flagfile(?:=(.*))?", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Argument:
    """A word of the command line."""

    text: str  # As in "--seed=1".
    place: str = ""  # The flag file and line it comes from, as in "base.flags:3".

    def sets(self, name: str) -> bool:
        """Whether this word sets the flag `name`: --name, --noname or --name=value."""
        return re.fullmatch(rf"--?(no)?{re.escape(name)}(=.*)?", self.text, re.DOTALL) is not None


def expand(argv: Sequence[str]) -> list[Argument]:
    """The arguments, with the lines of each file in place of its --flagfile.

    A line is --name=value, --name, --noname or --flagfile=another; empty lines and lines that start
    with # or // are comments. Other lines, and files that cannot be read, are a UserError.

        ["--seed=1", "--flagfile=base.flags"] -> --seed=1, and each flag of base.flags

    A recipe of the project is given by its name; an example file as "example:tickets/dev.tsv".
    """
    arguments = []
    words = iter(argv)
    for word in words:
        found = _FLAG_FILE.fullmatch(word)
        if not found:
            of_example = _EXAMPLE.fullmatch(word)
            if of_example:
                word = of_example[1] + shared_files.example(of_example[2])
            arguments.append(Argument(word))
            continue
        path = next(words, "") if found[1] is None else found[1]
        arguments += _lines(path, ())
    return arguments


def _lines(path: str, outer: tuple[str, ...]) -> Iterator[Argument]:
    """The flags in a flag file; `outer` are the files that include it, the outermost first."""
    path = os.path.expanduser(path)  # The shell does not expand the ~ in --flagfile=~/a.
    if not storage.exists(path):  # An existing file takes precedence over a recipe.
        path = shared_files.recipe(path)
    if path in outer:
        raise UserError(f"--flagfile={path}: the file reads itself. Remove that line.")
    try:
        text = storage.read_bytes(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise UserError(
            f"--flagfile={path} cannot be read: {reason}. Name a text file with one --name=value "
            "a line."
        ) from None
    for number, line in enumerate(text.splitlines(), 1):
        line, place = line.strip(), f"{path}:{number}"
        if not line or line.startswith(("#", "//")):
            continue
        if not _FLAG.fullmatch(line):
            raise UserError(f"{place}: {line!r} is not a flag. Write --name=value.")
        nested = _FLAG_FILE.fullmatch(line)
        if nested:
            yield from _lines(nested[1] or "", (*outer, path))
        else:
            yield Argument(line, place)
