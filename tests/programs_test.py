"""Every program's flags: grouped in --help, numbers checked, any value echoed or refused."""

from __future__ import annotations

import importlib
import itertools
import json
import re
import shlex
import sys

import numpy as np
import pytest
from absl.flags import (
    FLAGS,
    BaseListParser,
    BooleanParser,
    EnumParser,
    Flag,
    FloatParser,
    IntegerParser,
    MultiFlag,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.command_line import flags, run_binary
from tests.program_flags import PROGRAMS, flags_of

every_program = pytest.mark.parametrize("program", PROGRAMS)

HOSTILE = [
    *("0", "-0", "1", "-1", "-3", "0.5", "1.5", "2", "nan", "inf", "-inf", "1e400", "1e39"),
    *("2147483647", "2147483648", "0x10", "1_0", "true", "x", ""),
]
VALUES = st.one_of(
    st.sampled_from(HOSTILE),
    st.integers(-(2**80), 2**80).map(str),
    st.integers(-2, 2000).map(str),
    st.floats().map(repr),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
)


@pytest.fixture
def defined(new_flags):
    """(name of a program) -> its flags, defined for the test."""
    with new_flags():

        def define(program: str) -> list[Flag]:
            module = importlib.import_module(program)
            before = set(FLAGS)
            flags.group("")
            module.define_flags()
            assert {flag.name for flag in flags.defined()} == set(FLAGS) - before
            return flags.defined()

        yield define


def call(*argv: str, main=lambda: None) -> int:
    """Exit code of a program with the flags that are defined."""
    sys.argv = ["program.py", *argv]
    FLAGS.unparse_flags()
    with pytest.raises(SystemExit) as exit_info:
        run_binary(main)
    del FLAGS.print_flags
    return exit_info.value.code or 0


def test_there_are_programs():
    assert len(PROGRAMS) >= 16


@every_program
def test_flags_are_grouped_checked_and_explained(program, defined):
    for flag in defined(program):
        assert flag.group, f"--{flag.name} is in no group: flags.group(title) starts one"
        assert not isinstance(flag.parser, (FloatParser, IntegerParser)), (
            f"--{flag.name} is defined by absl: numbers are defined by data_pipeline.command_line"
        )
        assert re.match(r"[A-Z0-9<].{10,}\.", flag.help), f"--{flag.name}: {flag.help}"
        assert not flag.help.startswith("Of "), f"--{flag.name}: a help text has a subject"
        assert not (flag.required and flag.expert), f"--{flag.name} must be given, and is hidden"


def expected(flag: Flag, text: str) -> object:
    """What a text means for a flag; raises ValueError where it is not allowed."""
    if isinstance(flag.parser, flags.NumberParser):
        limits = flag.parser.numbers
        value = limits.kind(text)
        lowest = limits.at_least if limits.above is None else np.nextafter(limits.above, 1)
        highest = limits.largest if limits.below is None else np.nextafter(limits.below, 0)
        if not (np.isfinite(np.float32(value)) and lowest <= value <= highest):
            raise ValueError
        return value
    if isinstance(flag.parser, BooleanParser):
        return {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}.get(
            text.lower()
        )
    if isinstance(flag.parser, EnumParser) and text not in flag.parser.enum_values:
        raise ValueError
    return [text] if isinstance(flag, MultiFlag) else text


@every_program
def test_every_value_is_echoed_or_refused(program, defined, tmp_path, monkeypatch, capsys):
    """--print_flags shows what was resolved; nothing is written, and nothing ends otherwise."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", sys.argv)
    needed = {flag.name: "x" for flag in defined(program) if flag.required}
    for flag in flags.defined():
        if isinstance(flag.parser, EnumParser) and flag.required:
            needed[flag.name] = flag.parser.enum_values[0]

    def check(flag: Flag, text: str) -> None:
        given_flags = {**needed, flag.name: text}
        code = call("--print_flags", *(f"--{name}={value}" for name, value in given_flags.items()))
        shown = capsys.readouterr()
        try:
            value = expected(flag, text)
            is_allowed = value is not None and not (flag.required and not value)
        except (ValueError, OverflowError):
            is_allowed = False
        if isinstance(flag.parser, BaseListParser):
            is_allowed, value = code == 0, flag.value  # absl's business: quotes, commas.
        if is_allowed:
            assert code == 0, shown.err
            assert json.loads(shown.out, parse_constant=pytest.fail)[flag.name] == value
        else:
            assert code == 2, shown.out
            assert f"--{flag.name}" in shown.err and "Traceback" not in shown.err

    @settings(max_examples=25, deadline=None, database=None, derandomize=True)
    @given(VALUES)
    def every_flag(text: str) -> None:
        for flag in list(flags.defined()):
            check(flag, text)

    every_flag()
    for flag, text in itertools.product(list(flags.defined()), HOSTILE):
        check(flag, text)
    assert not list(tmp_path.iterdir())


def documented_commands(text: str) -> list[list[str]]:
    """The commands of a text that run a program of this project, as a shell divides them."""
    joined = re.sub(r"\\\n\s*", "", text)
    return [shlex.split(line) for line in re.findall(r"^ *python .*$", joined, re.M)]


@every_program
def test_help_shows_flags_and_examples_to_paste(program, run_program, capsys):
    shown = {}
    for argument in ("--help", "--helpfull"):
        with pytest.raises(SystemExit) as exit_info:
            run_program(program, argument)
        text = shown[argument] = capsys.readouterr().out
        assert not exit_info.value.code
        assert "tpu_tracer" not in text and "--v " not in text and "logtostderr" not in text
    defined = flags_of(program)
    is_whole = not any(flag.expert for flag in defined.values())
    assert is_whole == (shown["--help"] == shown["--helpfull"])
    for name, flag in defined.items():
        entry = rf"^  --{name}  \(.*(; default: .+|; required)\)$"
        assert re.search(entry, shown["--helpfull"], re.M), name
        assert bool(re.search(entry, shown["--help"], re.M)) != flag.expert, name
    assert shown["--help"].count("\n  --") <= 25
    commands = documented_commands(shown["--help"])
    assert commands, "the docstring shows no command"
    for command in commands:
        assert command[1:3] == ["-m", program.removesuffix(".__main__")]
        assert {word.removeprefix("--").partition("=")[0] for word in command[3:]} <= set(defined)
