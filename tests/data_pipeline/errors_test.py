"""Which errors are the user's, and what is said of them."""

import subprocess
import sys
from pathlib import Path

import tensorflow as tf

from data_pipeline.errors import UserError, is_user_error, message_of

ROOT = Path(__file__).parents[2]


def test_kinds_of_errors():
    assert is_user_error(UserError("x")) and is_user_error(FileNotFoundError("x"))
    assert is_user_error(tf.errors.DataLossError(None, None, "truncated record"))
    assert not is_user_error(KeyError("x"))


def test_callers_of_python_read_of_arguments_and_need_no_tensorflow():
    program = """
import sys
from data_pipeline.errors import UserError, is_user_error
from data_pipeline.command_line import program
error = UserError("--seed=-1, (--lower_case) or x--y: see --steps")
assert str(error) == "seed=-1, (lower_case) or x--y: see steps", error
assert "m p --x" in str(UserError("python -m p --x"))
program.name_flags()
assert "--seed=-1" in str(error)
assert is_user_error(error) and not is_user_error(KeyError("x"))
assert "tensorflow" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_description_is_one_line_and_names_the_file():
    assert message_of(FileNotFoundError(2, "No such file", "a.txt")) == "a.txt: No such file"
    assert message_of(tf.errors.DataLossError(None, None, "first\nsecond")) == "first"
    assert message_of(ValueError()) == "ValueError"


def test_what_tensorflow_writes_around_a_message_is_left_out():
    for kind, text, expected in (
        (
            "FailedPreconditionError",
            "Error executing an HTTP request: libcurl code 6 meaning 'no such host', "
            "error details: Could not resolve host: x.org\n\t when reading metadata of gs://b/x",
            "gs://b/x cannot be reached: Could not resolve host: x.org",
        ),
        (
            "FailedPreconditionError",
            "run/flags.json.partial; Is a directory",
            "run/flags.json is a folder where a file should be: move it away",
        ),
        (
            "ResourceExhaustedError",
            "{{function_node __wrapped__SaveV2_dtypes_32_device_/job:localhost}} "
            "out.new/model.ckpt.data-00000-of-00001.tempstate17; No space left on device [Op:X]",
            "out.new: No space left on device",
        ),
        (
            "UnimplementedError",
            "File system scheme 's3' not implemented (file: 's3://b/x')",
            "File system scheme 's3' not implemented (file: 's3://b/x')",
        ),
    ):
        error = getattr(tf.errors, kind)(None, None, text)
        assert is_user_error(error) and message_of(error) == expected
    for fault in ("Could not find variable a. Was it initialized?", "Cannot use it; it is closed"):
        assert not is_user_error(tf.errors.FailedPreconditionError(None, None, fault))
