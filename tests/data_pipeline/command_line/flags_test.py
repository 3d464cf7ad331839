"""Groups of flags, and the values that a program resolved."""

from __future__ import annotations

import pytest

from data_pipeline.command_line import flags
from data_pipeline.command_line.help import flag_help


@pytest.fixture
def defining(new_flags, monkeypatch):
    """Flags that a test defines, in a group without a name at first."""
    monkeypatch.setattr(flags, "_current_group", "")
    with new_flags():
        yield flags.FLAGS


def test_flags_know_their_group_and_whether_they_must_be_given(defining):
    flags.DEFINE_bool("test_bool", False, "Of no group.")
    flags.group("Numbers")
    flags.DEFINE_integer("test_integer", 3, "Of a group.")
    flags.DEFINE_float("test_float", None, "Of a group.", required=True)
    flags.group("Texts")
    flags.DEFINE_string("test_string", "x", "Of another.")
    found = {flag.name: (flag.group, flag.required) for flag in flags.defined()}
    assert list(found.items()) == [
        ("test_bool", ("", False)),
        ("test_integer", ("Numbers", False)),
        ("test_float", ("Numbers", True)),
        ("test_string", ("Texts", False)),
    ]


def test_numbers_are_not_negative_unless_it_is_said(defining):
    flags.DEFINE_integer("test_integer", 3, "Counted.")
    flags.DEFINE_float("test_float", 0.5, "Measured.")
    flags.DEFINE_integer("test_signed", -1, "Signed.", lower_bound=-2, upper_bound=5)
    flags.DEFINE_float("test_open", 1, "Open.", 0, 9, above=0, below=8)
    allowed = {flag.name: flag.parser.numbers.allowed() for flag in flags.defined()}
    assert allowed == {
        "test_integer": "an integer from 0 to 2,147,483,647",
        "test_float": "a finite number from 0 up",
        "test_signed": "an integer from -2 to 5",
        "test_open": "a finite number above 0, below 8",
    }


def test_resolved_values_are_those_to_be_recorded(defining):
    flags.DEFINE_integer("test_integer", 3, "Counted.")
    flags.DEFINE_list("test_list", ["a", "b"], "Listed.")
    flags.DEFINE_enum("test_enum", "b", ["a", "b"], "Chosen.")
    flags.DEFINE_multi_string("test_several", [], "Repeated.")
    flags.DEFINE_bool("print_flags", False, "Not to be recorded.")
    defining.test_integer = 7
    assert flags.resolved() == {
        "test_integer": 7, "test_list": ["a", "b"], "test_enum": "b", "test_several": [],
    }  # fmt: skip


def test_auto_is_neither_true_nor_false(defining):
    flags.DEFINE_auto_bool("lowers", None, "Whether text is lower-cased.")
    for argument, value in (
        *(("--lowers=auto", None), ("--lowers=true", True), ("--lowers=false", False)),
        *(("--lowers", True), ("--nolowers", False)),
    ):
        defining(["program", argument])
        assert defining.lowers is value and defining["lowers"].present
        assert flag_help(defining["lowers"]).startswith(
            "  --lowers  (auto | true | false; default: auto)"
        )
    with pytest.raises(flags.flags.IllegalFlagValueError, match="--lowers=perhaps"):
        defining(["program", "--lowers=perhaps"])
