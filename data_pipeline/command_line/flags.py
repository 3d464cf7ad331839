"""Flags as the programs define them: absl's, in groups for `--help`, and numbers that are checked.

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
    """Begins a group of `--help`, to which all flags belong that are defined from now on."""
    global _current_group
    _current_group = title


class NumberParser(flags.ArgumentParser):
    """The parser of a flag that is a number."""

    def __init__(self, numbers: Numbers) -> None:
        super().__init__()
        self.numbers = numbers

    def parse(self, argument: str | int | float) -> int | float:
        return self.numbers.parse(argument)


def _registered(define: Callable[..., Any]) -> Callable[..., Any]:
    """absl's `define`, for flags that know their group, whether they must be given (`required`),
    whether only --helpfull shows them (`expert`), and whether they may name files; those with
    `is_address` name services on the network.
    """

    may_name_paths = define in (flags.DEFINE_string, flags.DEFINE_list)  # Texts are multi_string.

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
        # absl adds choices and "may be repeated", which help.py says by itself.
        flag.help = inspect.signature(define).bind(name, *args, **kwargs).arguments["help"]
        flag.group, flag.required, flag.expert = _current_group, required, expert
        flag.may_name_paths = may_name_paths and not is_address

    return wrapped


def _define_number(name: str, default: float | None, help: str, numbers: Numbers) -> None:
    flags.DEFINE(NumberParser(numbers), name, default, help, serializer=flags.ArgumentSerializer())


def _define_integer(
    name: str,
    default: int | None,
    help: str,
    lower_bound: int = 0,
    upper_bound: int | None = None,
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
    """Leaves one of two flags that are given and decide the same: one of the command line counts
    before one of a flag file. `what` is what each decides, for the error.
    """
    if not all(FLAGS[name].present for name in names):
        return
    # Words of a flag file have a place in it.
    words = [word for word in flag_files.expand(sys.argv[1:]) if not word.place]
    direct = [name for name in names if any(word.sets(name) for word in words)]
    shown = {name: f"--{name}={FLAGS[name].value}" for name in names}
    if len(direct) != 1:
        raise UserError(
            f"{' and '.join(shown.values())} are both given, and each is {what}. Leave one out."
        )
    (of_file,) = set(names) - set(direct)
    print(f"{shown[direct[0]]} instead of {shown[of_file]} of the flag file.")
    FLAGS[of_file].unparse()


def defined() -> list[flags.Flag]:
    """The flags of the running program in the order of their definition; not absl's."""
    return [flag for flag in FLAGS._flags().values() if hasattr(flag, "group")]


def resolved() -> dict[str, Any]:
    """The value of each flag by name, to be recorded with what the program makes."""
    return {flag.name: flag.value for flag in defined() if flag.name != "print_flags"}
