"""Flags as the programs define them: absl's, in groups for `--help`, and numbers that are checked.

    flags.group("Training")
    flags.DEFINE_integer("num_train_steps", 125000, "Updates in all.", lower_bound=1)

A number is finite and not negative unless its definition says otherwise.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from absl import flags
from absl.flags import FLAGS

INTEGER_LIMIT = 2**31 - 1  # TensorFlow counts steps and draws seeds in int32.
NUMBER_LIMIT = 3.4028234663852886e38  # What is larger is infinite in float32.

_current_group = ""


def group(title: str) -> None:
    """Begins a group of `--help`, to which all flags belong that are defined from now on."""
    global _current_group
    _current_group = title


class NumberParser(flags.ArgumentParser):
    """A parser of numbers that refuses those beyond its limits.

    Args:
      kind: int or float.
      lower_bound, upper_bound: smallest and largest value; None: what int32 or float32 hold.
      above, below: limits that are not allowed themselves, or None.
    """

    def __init__(
        self,
        kind: type,
        lower_bound: float,
        upper_bound: float | None = None,
        above: float | None = None,
        below: float | None = None,
    ) -> None:
        super().__init__()
        self.kind, self.above, self.below = kind, above, below
        self.lower_bound = lower_bound
        limit = INTEGER_LIMIT if kind is int else NUMBER_LIMIT
        self.has_limit = upper_bound is not None
        self.upper_bound = limit if upper_bound is None else upper_bound

    def allowed(self) -> str:
        """The allowed values in words, as in "an integer from 1 to 65535"."""
        noun = "an integer" if self.kind is int else "a finite number"
        lower = f"above {self.above:g}" if self.above is not None else f"from {self.lower_bound:g}"
        upper = " up" if self.above is None else ""
        if self.below is not None:
            upper = f", below {self.below:g}"
        elif self.has_limit or self.kind is int:
            upper = f"{', up' if self.above is not None else ''} to {self.upper_bound:,}"
        return f"{noun} {lower}{upper}"

    def parse(self, argument: str | int | float) -> int | float:
        try:
            value = self.kind(argument)
        except (ValueError, OverflowError):
            value = math.nan
        is_within = (
            self.lower_bound <= value <= self.upper_bound
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )
        if not is_within:  # True of nan as well.
            raise ValueError(f"expected {self.allowed()}")
        return value


def _registered(define: Callable[..., Any]) -> Callable[..., Any]:
    """absl's `define`, for flags that know their group, whether they must be given, and whether
    they may name files; those with `is_address` name services on the network.
    """

    may_name_paths = define in (flags.DEFINE_string, flags.DEFINE_list)  # Texts are multi_string.

    @functools.wraps(define)
    def wrapped(
        name: str, *args: Any, required: bool = False, is_address: bool = False, **kwargs: Any
    ) -> None:
        define(name, *args, **kwargs)
        flag = FLAGS[name]
        flag.group, flag.required = _current_group, required
        flag.may_name_paths = may_name_paths and not is_address

    return wrapped


def _define_number(name: str, default: float | None, help: str, parser: NumberParser) -> None:
    flags.DEFINE(parser, name, default, help, serializer=flags.ArgumentSerializer())


def _define_integer(
    name: str,
    default: int | None,
    help: str,
    lower_bound: int = 0,
    upper_bound: int | None = None,
) -> None:
    _define_number(name, default, help, NumberParser(int, lower_bound, upper_bound))


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
    _define_number(name, default, help, NumberParser(float, lower_bound, upper_bound, above, below))


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
DEFINE_multi_string = _registered(flags.DEFINE_multi_string)
DEFINE_string = _registered(flags.DEFINE_string)
register_validator = flags.register_validator


def defined() -> list[flags.Flag]:
    """The flags of the running program in the order of their definition; not absl's."""
    return [flag for flag in FLAGS._flags().values() if hasattr(flag, "group")]


def resolved() -> dict[str, Any]:
    """The value of each flag by name, to be recorded with what the program makes."""
    return {flag.name: flag.value for flag in defined() if flag.name != "print_flags"}
