"""Flag files are written out in place, and each argument knows where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from data_pipeline.command_line.flag_files import Argument, expand
from data_pipeline.errors import UserError


@pytest.fixture
def write(tmp_path, monkeypatch):
    """(name, text) -> writes a flag file in the working folder, which is also the home folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return lambda name, text: (tmp_path / name).write_text(text, encoding="utf-8")


def test_words_of_the_command_line_have_no_place():
    assert expand([]) == []
    found = expand(["--seed=1", "-v", "words", "--flagfiles=x"])
    assert found == [Argument(word, "") for word in ("--seed=1", "-v", "words", "--flagfiles=x")]


def test_lines_come_in_place_of_the_file_with_their_numbers(write):
    write("base.flags", "# Note.\n\n--seed=1\n  // Another. \n  --fast  \n--nocolor\n-x=a b\n")
    assert expand(["--a=1", "--flagfile=base.flags", "--b"]) == [
        Argument("--a=1"),
        Argument("--seed=1", "base.flags:3"),
        Argument("--fast", "base.flags:5"),
        Argument("--nocolor", "base.flags:6"),
        Argument("-x=a b", "base.flags:7"),
        Argument("--b"),
    ]


@pytest.mark.parametrize(
    "argv", [["--flagfile=b.flags"], ["-flagfile=b.flags"], ["--flagfile", "b.flags"]], ids=" ".join
)
def test_ways_to_name_a_file(write, argv):
    write("b.flags", "--seed=1\n")
    expected = [Argument("--seed=1", "b.flags:1"), Argument("--last")]
    assert expand([*argv, "--last"]) == expected


def test_a_file_of_the_home_folder(write, tmp_path):
    write("b.flags", "--seed=1\n")
    assert expand(["--flagfile=~/b.flags"]) == [Argument("--seed=1", f"{tmp_path}/b.flags:1")]


def test_files_within_files(write):
    write("inner.flags", "--x=1\n")
    write("outer.flags", "--flagfile=inner.flags\n--y=2\n--flagfile=inner.flags\n")
    inner = Argument("--x=1", "inner.flags:1")
    assert expand(["--flagfile=outer.flags"]) == [inner, Argument("--y=2", "outer.flags:2"), inner]


@pytest.mark.parametrize(
    "argv, message",
    [
        (["--flagfile"], "--flagfile= cannot be read: No such file or directory. Name a text file"),
        (["--flagfile=no.flags"], "--flagfile=no.flags cannot be read: No such file"),
        (["--flagfile=a.flags"], "--flagfile=a.flags: the file reads itself. Remove that line."),
        (["--flagfile=bad.flags"], "bad.flags:2: 'seed 1' is not a flag. Write --name=value."),
        (["--flagfile=worse.flags"], "worse.flags:1: '--seed 1' is not a flag."),
        (["--flagfile=."], "--flagfile=. cannot be read: Is a directory"),
        (["--flagfile=binary.flags"], "--flagfile=binary.flags cannot be read: it is not text"),
        (["--flagfile=nested.flags"], "--flagfile= cannot be read: No such file"),
    ],
)
def test_files_that_are_wrong(write, argv, message):
    write("a.flags", "--flagfile=b.flags\n")
    write("b.flags", "--flagfile=a.flags\n")
    write("bad.flags", "--seed=1\nseed 1\n")
    write("worse.flags", "--seed 1\n")
    write("nested.flags", "--flagfile\n")
    Path("binary.flags").write_bytes(b"--rate=\xff\n")
    with pytest.raises(UserError) as error:
        expand(argv)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    "text, sets",
    [
        ("--seed=1", True), ("-seed=1", True), ("--seed", True), ("--noseed", True),
        ("--seed=a\nb", True), ("--seeds=1", False), ("--see=1", False), ("seed=1", False),
        ("---seed=1", False), ("--nonoseed", False),
    ],
)  # fmt: skip
def test_which_flag_an_argument_sets(text, sets):
    assert Argument(text).sets("seed") is sets
    assert not Argument("--axb=1").sets("a.b")


@pytest.mark.parametrize("name", ["finetune_mrpc", "configs/finetune_mrpc.flags"])
def test_recipes_and_examples_are_found_from_anywhere(write, name):
    found = expand([f"--flagfile={name}", "--train_file=example:tickets/train.tsv"])
    assert Argument("--task=mrpc") == Argument(found[0].text)
    assert found[0].place.endswith("/configs/finetune_mrpc.flags:3")
    path = found[-1].text.removeprefix("--train_file=")
    assert path.endswith("tickets/train.tsv") and Path(path).is_file()
    write("finetune_mrpc", "--task=own\n")
    assert expand(["--flagfile=finetune_mrpc"]) == [Argument("--task=own", "finetune_mrpc:1")]
