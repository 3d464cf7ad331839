"""The programs' flags: absl flags with groups for `--help` and with checked numbers.

    flags.group("Training")
    flags.DEFINE_integer("num_train_steps", 125000, "Updates in all.", lower_bound=1)

A number is finite and not negative unless its definition says otherwise.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from absl import flags
from absl.flags import FLAGS

from data_pipeline.command_line import flag_files
from data_pipeline.errors import UserError
from data_pipeline.settings import Numbers

_current_group = ""


def group(title: str) -> None:
    """Begins a group of `--help`; flags defined after this call belong to it."""
    global _current_group
    _current_group = title


class NumberParser(flags.ArgumentParser):
    """The parser of a numeric flag."""

    def __init__(self, numbers: Numbers) -> None:
        super().__init__()
        self.numbers = numbers

    def parse(self, argument: str | int | float) -> int | float:
        return self.numbers.parse(argument)


def _registered(define: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps absl's `define` to record a flag's group, whether it must be given (`required`),
    whether only --helpfull shows it (`expert`), and whether it may name files; with `is_address`
    it names a network service instead.
    """

    may_name_paths = define in (flags.DEFINE_string, flags.DEFINE_list)  # multi_string is text.

    @functools.wraps(define)
    def wrapped(
        name: str,
        *args: Any,
        required: bool = False,
        expert: bool = False,
        is_address: bool = False,
        **kwargs: Any,
    ) -> None:
        define(name, *args, **kwargs)
        flag = FLAGS[name]
        # absl adds the choices and "may be repeated" to the help text; help.py shows these itself.
        flag.help = inspect.signature(define).bind(name, *args, **kwargs).arguments["help"]
        flag.group, flag.required, flag.expert = _current_group, required, expert
        flag.may_name_paths = may_name_paths and not is_address

    return wrapped


def _define_number(name: str, default: float | None, help: str, numbers: Numbers) -> None:
    flags.DEFINE(NumberParser(numbers), name, default, help, serializer=flags.ArgumentSerializer())


def _define_integer(
    name: str, default: int | None, help: str, lower_bound: int = 0, upper_bound: int | None = None
) -> None:
    _define_number(name, default, help, Numbers(int, lower_bound, upper_bound))


def _define_float(
    name: str,
    default: float | None,
    help: str,
    lower_bound: float = 0.0,
    upper_bound: float | None = None,
    *,
    above: float | None = None,
    below: float | None = None,
) -> None:
    _define_number(name, default, help, Numbers(float, lower_bound, upper_bound, above, below))


class AutoBoolParser(flags.BooleanParser):
    """A parser of true, false and auto, which becomes None."""

    def parse(self, argument: str | int | bool) -> bool | None:
        return None if argument == "auto" else super().parse(argument)


def _define_auto_bool(name: str, default: bool | None, help: str) -> None:
    serializer = flags.ArgumentSerializer()
    flags.DEFINE(AutoBoolParser(), name, default, help, serializer=serializer, boolean=True)


DEFINE_auto_bool = _registered(_define_auto_bool)
DEFINE_bool = _registered(flags.DEFINE_bool)
DEFINE_enum = _registered(flags.DEFINE_enum)
DEFINE_float = _registered(_define_float)
DEFINE_integer = _registered(_define_integer)
DEFINE_list = _registered(flags.DEFINE_list)
DEFINE_number = _registered(_define_number)
DEFINE_multi_string = _registered(flags.DEFINE_multi_string)
DEFINE_string = _registered(flags.DEFINE_string)
register_validator = flags.register_validator


def leave_one(what: str, *names: str) -> None:
    """Resolves two given flags that set the same thing: a flag on the command line overrides one
    from a flag file. `what` describes what they set, for the error message.
    """
    if not all(FLAGS[name].present for name in names):
        return
    # Only words from a flag file have a `place`.
    words = [word for word in flag_files.expand(sys.argv[1:]) if not word.place]
    direct = [name for name in names if any(word.sets(name) for word in words)]
    shown = {name: f"--{name}={FLAGS[name].value}" for name in names}
    if len(direct) != 1:
        raise UserError(f"{' and '.join(shown.values())} both set {what}. Leave one out.")
    (of_file,) = set(names) - set(direct)
    print(f"{shown[direct[0]]} overrides {shown[of_file]} of the flag file.")
    FLAGS[of_file].unparse()


def defined() -> list[flags.Flag]:
    """The running program's own flags in order of definition, without those of absl."""
    return [flag for flag in FLAGS._flags().values() if hasattr(flag, "group")]


def resolved() -> dict[str, Any]:
    """The value of each flag by name, to be stored with the program's output."""
    return {flag.name: flag.value for flag in defined() if flag.name != "print_flags"}
