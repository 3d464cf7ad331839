"""The text of --help: groups, kinds of flags, defaults, lines of 100 characters."""

from __future__ import annotations

from types import ModuleType

import pytest

from data_pipeline.command_line import flags
from data_pipeline.command_line.help import flag_help, help_text


@pytest.fixture(autouse=True)
def defining(new_flags, monkeypatch):
    """Flags that a test defines."""
    monkeypatch.setattr(flags, "_current_group", "")
    with new_flags():
        yield


@pytest.mark.parametrize(
    "define, arguments, expected",
    [
        (flags.DEFINE_integer, [3, "For.", 1], "an integer from 1 to 2,147,483,647; default: 3"),
        (flags.DEFINE_float, [None, "For."], "a finite number from 0 up; default: none"),
        (flags.DEFINE_float, [0.0, "For."], "a finite number from 0 up; default: 0.0"),
        (flags.DEFINE_string, [None, "For."], "text; default: none"),
        (flags.DEFINE_string, ["", "For."], "text; default: none"),
        (flags.DEFINE_string, ["a/b", "For."], "text; default: a/b"),
        (flags.DEFINE_bool, [True, "For."], "true | false; default: true"),
        (flags.DEFINE_bool, [None, "For."], "true | false; default: none"),
        (flags.DEFINE_list, [["a", "b"], "For."], "texts separated by commas; default: a,b"),
        (flags.DEFINE_multi_string, [[], "For."], "text, may be repeated; default: none"),
        (flags.DEFINE_multi_string, [["x", "y"], "For."], "text, may be repeated; default: x,y"),
        (flags.DEFINE_enum, ["b", ["a", "b"], "For."], "a | b; default: b"),
    ],
)
def test_kind_and_default(define, arguments, expected):
    define("name", *arguments)
    assert flag_help(flags.defined()[-1]) == f"  --name  ({expected})\n      For."


def test_what_must_be_given_has_no_default():
    flags.DEFINE_string("path", None, "For.", required=True)
    assert flag_help(flags.defined()[-1]) == "  --path  (text; required)\n      For."


@pytest.mark.parametrize("word, width", [("word", 100), ("a", 99)])
def test_lines_have_up_to_100_characters(word, width):
    flags.DEFINE_string("path", None, " ".join([word] * 60))
    _, first, *others = flag_help(flags.defined()[-1]).split("\n")
    assert len(first) == width and others
    assert all(line.startswith("      ") and line[6] == word[0] for line in [first, *others])
    assert " ".join([first, *others]).split() == [word] * 60


def test_words_with_hyphens_stay_whole():
    flags.DEFINE_string("path", None, " ".join(["one-two"] * 30))
    assert not any(line.endswith("-") for line in flag_help(flags.defined()[-1]).split("\n"))


def test_groups_come_in_the_order_of_their_first_flags():
    flags.group("Numbers")
    flags.DEFINE_integer("test_b", 1, "Second.", 0, 9)
    flags.group("Files")
    flags.DEFINE_string("test_a", None, "First.")
    flags.group("Numbers")
    flags.DEFINE_integer("test_c", 2, "Third.", 0, 9)
    program = ModuleType("program", "What it does.\n\n    python -m program\n    ")
    assert help_text(program, full=True).split("\n") == [
        "What it does.",
        "",
        "python -m program",
        "",
        "Numbers:",
        "  --test_b  (an integer from 0 to 9; default: 1)",
        "      Second.",
        "  --test_c  (an integer from 0 to 9; default: 2)",
        "      Third.",
        "",
        "Files:",
        "  --test_a  (text; default: none)",
        "      First.",
    ]
    assert help_text(ModuleType("program"), full=True).startswith("\n\nNumbers:\n")


def test_flags_of_experts_are_shown_by_the_full_help():
    flags.group("Numbers")
    flags.DEFINE_integer("test_a", 1, "First.", expert=True)
    flags.group("Files")
    flags.DEFINE_string("test_b", None, "Second.")
    program = ModuleType("program", "What it does.")
    text = help_text(program, full=False)
    assert "test_a" not in text and "Numbers:" not in text and "  --test_b  (text" in text
    assert text.endswith("\n\n--helpfull lists all 2 flags; rarely used ones are omitted here.")
    text = help_text(program, full=True)
    assert "  --test_a  (" in text and "  --test_b  (" in text and "--helpfull" not in text
