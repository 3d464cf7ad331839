"""The text of `--help`: what the program does, and its flags in groups."""

from __future__ import annotations

import inspect
import itertools
import textwrap
from types import ModuleType

from absl.flags import BooleanFlag, EnumParser, Flag, ListParser, MultiFlag

from data_pipeline.command_line import flags

_WIDTH = 100


def help_text(program: ModuleType, full: bool) -> str:
    """The docstring of a program's module, followed by its flags in groups; without `full`, only
    the commonly used flags.
    """
    parts = [inspect.cleandoc(program.__doc__ or "")]
    shown = [flag for flag in flags.defined() if full or not flag.expert]
    # Sorted, because a group may be continued later and `groupby` joins only neighbors.
    by_group = itertools.groupby(sorted(shown, key=_place), lambda flag: flag.group)
    for title, found in by_group:
        parts.append("\n".join([f"{title}:", *map(flag_help, found)]))
    if len(shown) < (count := len(flags.defined())):
        parts.append(f"--helpfull lists all {count} flags; rarely used ones are omitted here.")
    return "\n\n".join(parts)


def _place(flag: Flag) -> int:
    """Number of the flag's group; groups are ordered by their first flags."""
    return list(dict.fromkeys(f.group for f in flags.defined())).index(flag.group)


def flag_help(flag: Flag) -> str:
    """The entry of one flag: its name, allowed values, default and purpose."""
    head = f"  --{flag.name}"
    about = f"{_kind(flag)}; {_default(flag)}"
    indent = " " * 6
    lines = textwrap.wrap(
        flag.help, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    return "\n".join([f"{head}  ({about})", *lines])


def _kind(flag: Flag) -> str:
    if isinstance(flag.parser, flags.NumberParser):
        return flag.parser.numbers.allowed()
    if isinstance(flag.parser, EnumParser):
        return " | ".join(flag.parser.enum_values)
    if isinstance(flag.parser, ListParser):
        return "texts separated by commas"
    if isinstance(flag.parser, flags.AutoBoolParser):
        return "auto | true | false"
    if isinstance(flag, BooleanFlag):
        return "true | false"
    return "text, may be repeated" if isinstance(flag, MultiFlag) else "text"


def _default(flag: Flag) -> str:
    if flag.required:
        return "required"
    if isinstance(flag.parser, flags.AutoBoolParser):
        return "default: auto"
    if flag.default is None or flag.default in ("", []):
        return "default: none"
    default = flag.default
    if isinstance(default, bool):
        default = str(default).lower()
    return f"default: {','.join(default) if isinstance(default, list) else default}"
