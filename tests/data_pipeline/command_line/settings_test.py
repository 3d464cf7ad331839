"""Flags made of a dataclass of settings, and the dataclass made of the flags."""

from __future__ import annotations

import dataclasses

import pytest

from data_pipeline.command_line import flags
from data_pipeline.command_line.settings import define, read
from data_pipeline.settings import Settings, setting


@dataclasses.dataclass(frozen=True)
class Example(Settings):
    """A setting of each kind."""

    path: str = setting(help="Folder of things.")
    plain: int = 0
    count: int = setting(3, "Number of things.", at_least=1, expert=True)
    rate: float | None = setting(None, "Share of things; default: all.", at_most=1)
    kind: str = setting("a", "Kind of thing.", one_of=("a", "b"))
    lower: bool | None = setting(None, "Lower-case things; auto: as they say.")
    is_new: bool = setting(False, "Take new things only.")
    parts: tuple[str, ...] = setting((), "Parts to keep.", one_of=("x", "y"))
    host: str = setting("here", "Name of a machine.", is_address=True)


@pytest.fixture(autouse=True)
def defining(new_flags):
    """Flags that a test defines."""
    with new_flags():
        yield


def test_flags_are_the_settings():
    define(Example, "Things", hidden=("kind",), count=5)
    found = {flag.name: flag for flag in flags.defined()}
    assert list(found) == [*("path", "count", "rate", "kind", "lower", "is_new", "parts", "host")]
    assert {flag.group for flag in found.values()} == {"Things"}
    assert [flag.name for flag in found.values() if flag.required] == ["path"]
    assert [flag.name for flag in found.values() if flag.expert] == ["count", "kind"]
    assert [flag.name for flag in found.values() if flag.may_name_paths] == ["path", "parts"]
    assert found["count"].default == 5 and found["count"].help == "Number of things."
    assert found["rate"].parser.numbers.allowed() == "a finite number from 0 to 1"


def test_flags_become_the_settings():
    define(Example, "Things")
    flags.FLAGS(["program", "--path=p"])
    assert read(Example) == Example("p")
    flags.FLAGS(
        [
            *("program", "--count=7", "--rate=0.5", "--kind=b", "--lower=false", "--is_new"),
            *("--parts=y,x", "--host=there", "--path=q"),
        ]
    )
    expected = Example("q", 4, 7, 0.5, "b", False, True, ("y", "x"), "there")
    assert read(Example, plain=4) == expected
    assert read(Example, plain=4, count=1) == dataclasses.replace(expected, count=1)


def test_settings_of_one_name_share_a_flag_and_what_has_none_has_its_default():
    flags.DEFINE_integer("plain", 9, "A number.")
    flags.DEFINE_string("path", "there", "A folder.")
    define(Example, "Things", without=("count", "rate", "kind", "lower", "is_new", "parts"))
    assert [flag.name for flag in flags.defined()] == ["plain", "path", "host"]
    flags.FLAGS(["program"])
    assert read(Example) == Example("there", 9)


@pytest.mark.parametrize("argument", ["--count=0", "--rate=2", "--kind=c", "--parts=x,z"])
def test_flags_refuse_what_settings_refuse(argument):
    define(Example, "Things", path="p")
    with pytest.raises(flags.flags.IllegalFlagValueError, match=argument.partition("=")[0]):
        flags.FLAGS(["program", argument])
