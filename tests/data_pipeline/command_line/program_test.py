"""How programs start and end: flags and flag files that are wrong, errors, faults."""

from __future__ import annotations

import errno
import logging
import os
import random
import signal
import subprocess
import sys

import pytest

from data_pipeline.command_line import flags, run_binary
from data_pipeline.errors import UserError


@pytest.fixture
def call(new_flags, monkeypatch, capsys):
    """(main, *argv) -> exit code and what went to stdout and stderr."""

    def run(main, *argv: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["some/program.py", *argv])
        with new_flags():
            flags.group("Numbers")
            flags.DEFINE_integer("steps", 3, "Updates in all.", lower_bound=1)
            flags.DEFINE_float("rate", 0.5, "Of learning.", below=1)
            flags.group("Files")
            flags.DEFINE_string("folder", None, "Where results go.", required=True)
            flags.DEFINE_bool("fast", False, "Go fast.")
            with pytest.raises(SystemExit) as exit_info:
                run_binary(main)
        return exit_info.value.code or 0, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    "argv, message",
    [
        (["--steps=0"], "--steps=0: expected an integer from 1 to 2,147,483,647. Updates in all."),
        (["--rate=nan"], "--rate=nan: expected a finite number from 0, below 1. Of learning."),
        (["--fast=perhaps"], "--fast=perhaps"),
        (["--stebs=2"], "--stebs is unknown. Did you mean --steps?"),
        (["--zzz"], "--zzz is unknown. (--help"),
        (["--steps"], "Missing value for flag --steps"),
        ([], "--folder is missing: Where results go."),
        (["--folder="], "--folder is missing: Where results go."),
        (["--folder=\udcff"], "--folder contains bytes that are not UTF-8."),
        (["--folder=x", "words"], "unexpected argument 'words': options are written --name=value"),
    ],
)
def test_flags_that_are_wrong(call, argv, message):
    folder = [] if any("folder" in word for word in argv) or not argv else ["--folder=x"]
    code, shown, errors = call(lambda: pytest.fail("main was called"), *folder, *argv)
    assert code == 2 and not shown
    assert errors.startswith(f"program.py: error: {message}") and errors.count("\n") == 1


@pytest.mark.parametrize(
    "lines, message",
    [
        ("# Rates.\n\n--rate=0.1\n--steps=-1\n", "one.flags:4: --steps=-1: expected an integer"),
        ("--steps=2\n--stebs=2\n", "one.flags:2: --stebs is unknown. Did you mean --steps?"),
        ("// See two.\n--flagfile=two.flags\n", "two.flags:2: --rate=inf: expected a finite"),
        ("--flagfile=three.flags\n", "--flagfile=three.flags cannot be read: No such file"),
    ],
)
def test_flag_files_that_are_wrong(call, tmp_path, monkeypatch, lines, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.flags").write_text(lines)
    (tmp_path / "two.flags").write_text("--steps=7\n--rate=inf\n")
    code, _, errors = call(pytest.fail, "--folder=x", "--flagfile=one.flags")
    assert code == 2
    assert errors.startswith(f"program.py: error: {message}") and errors.count("\n") == 1


def test_flag_files_are_read_in_their_place(call, tmp_path):
    (tmp_path / "inner.flags").write_text("--folder=inner\n--steps=5\n")
    (tmp_path / "outer.flags").write_text(f"--flagfile={tmp_path}/inner.flags\n--fast\n")
    seen = []
    code, _, errors = call(
        lambda: seen.append(flags.resolved()),
        *("--steps=4", "--flagfile", f"{tmp_path}/outer.flags", "--rate=0.25"),
    )
    assert code == 0, errors
    assert seen == [{"steps": 5, "rate": 0.25, "folder": "inner", "fast": True}]


@pytest.mark.parametrize(
    "error, message",
    [
        (UserError("Two is too much."), "Two is too much."),
        (UserError("/data/x holds no model."), "--folder=/data/x: /data/x holds no model."),
        (UserError("--steps=2 is too much for /data/x."), "--steps=2 is too much for /data/x."),
        (FileNotFoundError(2, "No such file", "/data/x"), "--folder=/data/x: /data/x: No such"),
        (PermissionError(13, "Permission denied", "/data/x/y.json"), "--folder=/data/x: /data/x/y"),
        (FileNotFoundError(2, "No such file", "/data/xy"), "/data/xy: No such file. Check that"),
    ],
)
def test_errors_name_the_flag_of_the_path(call, error, message):
    def main() -> None:
        raise error

    code, _, errors = call(main, "--folder=/data/x")
    assert code == 2
    assert errors.startswith(f"program.py: error: {message}") and errors.count("\n") == 1


def test_faults_of_the_program_keep_their_traceback(call):
    def main() -> None:
        raise KeyError("a fault")

    with pytest.raises(KeyError, match="a fault"):
        call(main, "--folder=x")


def test_tensorflow_gives_no_advice_on_tracing(call, caplog):
    def main() -> None:
        logger = logging.getLogger("tensorflow")
        logger.warning("5 out of the last %d calls to <f> triggered tf.function retracing.", 17)
        logger.warning("another warning")

    call(main, "--folder=x")
    assert caplog.messages == ["another warning"]


@pytest.mark.parametrize("flag, lines", [("--folder=x", 100_000), ("--folder=x", 1), ("--help", 0)])
def test_output_that_nobody_reads_on_ends_the_program(call, monkeypatch, flag, lines):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert call(lambda: print("line\n" * lines), flag)[0] == 141


def test_another_pipe_that_breaks_is_an_error(call):
    def main() -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    code, _, errors = call(main, "--folder=x")
    assert code == 2 and errors.startswith("program.py: error: [Errno 32] Broken pipe.")


def test_ctrl_c_while_a_vocabulary_is_learned(tmp_path):
    """At once, though SentencePiece is in code that Python does not see."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijkl", k=rng.randint(3, 9))) for _ in range(20000)]
    lines = (" ".join(rng.choices(words, k=12)) for _ in range(20000))
    (tmp_path / "text.txt").write_text("\n".join(lines))
    command = ["-m", "data_pipeline.train_vocabulary", f"--input={tmp_path / 'text.txt'}"]
    process = subprocess.Popen(
        [sys.executable, *command, f"--output_dir={tmp_path / 'out'}", "--vocab_size=8000"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while "100%" not in (line := process.stderr.readline()):
        assert line, "it ended before it had read the text"
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == -signal.SIGINT
    assert "Traceback" not in process.stderr.read() and not list((tmp_path / "out").glob("spiece*"))


def test_help_is_in_groups(call, monkeypatch):
    docstring = "Does it.\n\n    python -m it \\\n      --x\n"
    monkeypatch.setattr(sys.modules["__main__"], "__doc__", docstring)
    code, shown, errors = call(pytest.fail, "--help")
    assert (code, errors) == (0, "")
    assert shown.startswith("Does it.\n\npython -m it \\\n  --x\n\nNumbers:\n")
    assert "\nFiles:\n" in shown.partition("\nThis command:\n  --print_flags  (")[0]
