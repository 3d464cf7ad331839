"""Settings declare their bounds and choices once; what they refuse is refused by a sentence."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from data_pipeline.errors import UserError
from data_pipeline.settings import Numbers, Settings, setting, settings_of

LARGEST_FLOAT = 3.4028234663852886e38


@dataclasses.dataclass(frozen=True)
class Example(Settings):
    """A setting of each kind."""

    count: int = setting(3, "Number of things.", at_least=1, expert=True)
    rate: float = setting(0.5, "Share of things.", above=0, below=1)
    most: int | None = setting(None, "Largest number of things; default: all.")
    kind: str = setting("a", "Kind of thing.", one_of=("a", "b"))
    name: str | None = setting(None, "Name of the thing.")
    is_new: bool = setting(False, "Take new things only.")
    parts: tuple[str, ...] = setting((), "Parts to keep.", one_of=("x", "y"))
    other: object = None


@pytest.mark.parametrize(
    "numbers, allowed, taken, refused",
    [
        (Numbers(int, 1), "an integer from 1 to 2,147,483,647", ["1", "2147483647"],
         ["0", "2147483648", "1.5", "x", "", math.inf, math.nan]),
        (Numbers(int, 0, 100), "an integer from 0 to 100", ["100"], ["-1", "101"]),
        (Numbers(float, 0), "a finite number from 0 up", ["0", "1e-9", repr(LARGEST_FLOAT)],
         ["-1e-9", "nan", "inf", "3.41e38", "1e400", "x", ""]),
        (Numbers(float, 0.98, 1), "a finite number from 0.98 to 1", ["0.98", "1"],
         ["0.979", "1.001"]),
        (Numbers(float, 0, below=1), "a finite number from 0, below 1", ["0"], ["-7", "1"]),
        (Numbers(float, 0, above=0), "a finite number above 0", ["1e-9"], ["0"]),
        (Numbers(float, 0, above=0, below=1), "a finite number above 0, below 1", ["0.5"],
         ["0", "1"]),
        (Numbers(float, 0, 5, above=0), "a finite number above 0, up to 5", ["5"], ["0", "5.1"]),
    ],
)  # fmt: skip
def test_numbers(numbers, allowed, taken, refused):
    assert numbers.allowed() == allowed
    for text in taken:
        found = numbers.parse(text)
        assert found == float(text) and type(found) is numbers.kind
    for text in refused:
        with pytest.raises(ValueError, match=f"^expected {allowed}$"):
            numbers.parse(text)


def test_what_is_declared():
    found = {each.name: each for each in settings_of(Example)}
    assert list(found) == ["count", "rate", "most", "kind", "name", "is_new", "parts"]
    kinds = [each.kind for each in found.values()]
    assert kinds == [int, float, int, str, str, bool, tuple]
    assert [each.name for each in found.values() if each.may_be_none] == ["most", "name"]
    assert found["count"].expert and not found["rate"].expert
    assert found["rate"].numbers == Numbers(float, above=0, below=1)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"count": 1, "rate": 0.9, "most": 0, "kind": "b", "name": "n", "is_new": True},
        {"count": np.int64(7), "rate": np.float32(0.25), "parts": ("y", "x"), "other": "anything"},
    ],
)
def test_what_is_allowed(values):
    found = dataclasses.asdict(Example(**values))
    assert {name: found[name] for name in values} == values


@pytest.mark.parametrize(
    "values, message",
    [
        ({"count": 0}, "--count=0: expected an integer from 1 to 2,147,483,647. Number of things."),
        ({"count": 1.5}, "--count=1.5: expected an integer from 1"),
        ({"count": "2"}, "--count=2: expected an integer from 1"),
        ({"count": None}, "--count=None: expected an integer from 1"),
        ({"rate": 1}, "--rate=1: expected a finite number above 0, below 1. Share of things."),
        ({"rate": math.nan}, "--rate=nan: expected a finite number above 0"),
        ({"most": -1}, "--most=-1: expected an integer from 0"),
        ({"kind": "c"}, "--kind=c: value should be one of <a|b>. Kind of thing."),
        ({"is_new": "no"}, "--is_new=no: expected true or false. Take new things only."),
        ({"parts": ("x", "z")}, "--parts=x,z: Name some of x, y. Parts to keep."),
    ],
)
def test_what_is_refused(values, message):
    with pytest.raises(UserError) as raised:
        Example(**values)
    assert str(raised.value).startswith(message)
