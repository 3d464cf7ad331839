"""Binaries end with one line and exit code 2 when the user is at fault, else with a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from data_pipeline.errors import UserError, describe, is_user_error

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from absl import flags
import tensorflow as tf
from data_pipeline.errors import UserError, run_binary
flags.DEFINE_integer("number", 1, "A number.")
def main():
    if flags.FLAGS.number == 2: raise UserError("Two is too much.")
    if flags.FLAGS.number == 3: raise KeyError("program fault")
    print("fine")
run_binary(main)
"""


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    "argument, code, says",
    [("--number=2", 2, "error: Two is too much."), ("--number=x", 2, "--number")],
)
def test_user_errors_are_one_line(argument, code, says):
    result = run(argument)
    assert result.returncode == code
    assert says in result.stderr.strip().splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_faults_of_the_program_keep_their_traceback():
    result = run("--number=3")
    assert result.returncode == 1
    assert "Traceback" in result.stderr and "program fault" in result.stderr


def test_kinds_of_errors():
    assert is_user_error(UserError("x")) and is_user_error(FileNotFoundError("x"))
    assert is_user_error(tf.errors.DataLossError(None, None, "truncated record"))
    assert not is_user_error(KeyError("x")) and is_user_error(KeyError("x"), [KeyError])


def test_description_is_one_line_and_names_the_file():
    assert describe(FileNotFoundError(2, "No such file", "a.txt")) == "a.txt: No such file"
    assert describe(tf.errors.DataLossError(None, None, "first\nsecond")) == "first"
    assert describe(ValueError()) == "ValueError"
