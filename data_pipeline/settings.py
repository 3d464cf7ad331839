"""Settings: fields of dataclasses that declare a help text, bounds and choices.

    @dataclasses.dataclass(frozen=True)
    class LoopSettings(Settings):
        steps_per_loop: int = setting(10, "Updates between two reports.", at_least=1)

    LoopSettings(steps_per_loop=0)
    -> UserError: --steps_per_loop=0: expected an integer from 1 to 2,147,483,647. Updates ...

Libraries import this module. It has no flags: command_line/settings.py defines them from settings.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Sequence
from typing import Any

from data_pipeline.errors import UserError

INTEGER_LIMIT = 2**31 - 1  # TensorFlow counts steps and draws seeds in int32.
NUMBER_LIMIT = 3.4028234663852886e38  # Larger numbers are infinite in float32.


@dataclasses.dataclass(frozen=True)
class Numbers:
    """The allowed values of a numeric setting: finite, and not negative unless `at_least` is."""

    kind: type  # int or float.
    at_least: float = 0
    at_most: float | None = None  # None: the largest int32 or float32.
    # Exclusive limits.
    above: float | None = None
    below: float | None = None

    @property
    def largest(self) -> float:
        """The largest allowed number, apart from `below`."""
        if self.at_most is not None:
            return self.at_most
        return INTEGER_LIMIT if self.kind is int else NUMBER_LIMIT

    def allowed(self) -> str:
        """The numbers in words, as in "an integer from 1 to 65,535"."""
        noun = "an integer" if self.kind is int else "a finite number"
        lower = f"above {self.above:g}" if self.above is not None else f"from {self.at_least:g}"
        upper = " up" if self.above is None else ""
        if self.below is not None:
            upper = f", below {self.below:g}"
        elif self.at_most is not None or self.kind is int:
            upper = f"{', up' if self.above is not None else ''} to {self.largest:,}"
        return f"{noun} {lower}{upper}"

    def parse(self, text: str | int | float) -> int | float:
        """Converts text to a number; ValueError if it is not a number, or not an allowed one."""
        try:
            value = self.kind(text)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        is_within = (
            self.at_least <= value <= self.largest
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )
        if not is_within:  # Also true for NaN.
            raise ValueError(f"expected {self.allowed()}")
        return value


def setting(
    default: Any = dataclasses.MISSING,
    help: str = "",
    *,
    one_of: Sequence[str] = (),
    expert: bool = False,
    is_address: bool = False,
    **bounds: float | None,
) -> Any:
    """A dataclass field that is a setting, and a flag in programs that define flags from it.

    Args:
      default: value of the field, and of the flag unless the program sets another. None is for
        fields that may be None, in which case something else decides, named in the help text.
      help: text that can be understood on its own.
      one_of: the allowed values of a string, or of each string of a tuple; (): any.
      expert: whether only --helpfull shows the flag.
      is_address: whether the string names a network service, not a path.
      bounds: see `Numbers`.

    Returns:
      What `dataclasses.field` returns.
    """
    about = {"help": help, "one_of": tuple(one_of), "expert": expert, "is_address": is_address}
    return dataclasses.field(default=default, metadata={"setting": {**about, "bounds": bounds}})


@dataclasses.dataclass(frozen=True)
class Setting:
    """A declared setting, see `setting`."""

    name: str
    kind: type  # bool, int, float, str, or tuple (of strings).
    may_be_none: bool  # Whether None is an allowed value.
    default: Any  # dataclasses.MISSING if there is none.
    numbers: Numbers | None  # The allowed numbers; None if the setting is not a number.
    help: str
    one_of: tuple[str, ...]
    expert: bool
    is_address: bool

    def complaint(self, value: Any) -> str | None:
        """The complaint about a value, phrased as in absl's errors for flags; None if allowed."""
        if value is None and self.may_be_none:
            return None
        if self.numbers:
            expected = f"expected {self.numbers.allowed()}"
            try:
                is_allowed = self.numbers.parse(value) == value
            except ValueError:
                is_allowed = False
        elif self.kind is bool:
            expected, is_allowed = "expected true or false", isinstance(value, bool)
        elif self.kind is tuple:
            expected = f"Name some of {', '.join(self.one_of)}"
            is_allowed = not self.one_of or set(value) <= set(self.one_of)
        else:
            expected = f"value should be one of <{'|'.join(self.one_of)}>"
            is_allowed = not self.one_of or value in self.one_of
        return None if is_allowed else expected


def settings_of(kind: type) -> tuple[Setting, ...]:
    """The settings among the fields of a dataclass, in their order."""
    types_by_name = typing.get_type_hints(kind)
    return tuple(
        _declared(field, types_by_name[field.name])
        for field in dataclasses.fields(kind)
        if "setting" in field.metadata
    )


def _declared(field: dataclasses.Field, annotation: Any) -> Setting:
    """The setting of a field. Annotations are types such as int, int | None, tuple[str, ...]."""
    may_be_none = isinstance(annotation, types.UnionType)
    if may_be_none:
        [annotation] = set(annotation.__args__) - {types.NoneType}
    kind = typing.get_origin(annotation) or annotation
    about = dict(field.metadata["setting"])
    bounds = about.pop("bounds")
    numbers = Numbers(kind, **bounds) if kind in (int, float) else None
    return Setting(field.name, kind, may_be_none, field.default, numbers, **about)


@dataclasses.dataclass(frozen=True)
class Settings:
    """Base class for dataclasses of settings; checks their values.

    Raises:
      UserError: a value is not allowed; the message names the flag.
    """

    def __post_init__(self) -> None:
        for each in settings_of(type(self)):
            value = getattr(self, each.name)
            if complaint := each.complaint(value):
                shown = ",".join(map(str, value)) if isinstance(value, (tuple, list)) else value
                raise UserError(f"--{each.name}={shown}: {complaint}. {each.help}")
