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


def test_tensorflow_is_not_loaded_to_look_at_an_error():
    program = """
import sys
from data_pipeline.errors import UserError, is_user_error
assert is_user_error(UserError("x")) and not is_user_error(KeyError("x"))
assert "tensorflow" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_description_is_one_line_and_names_the_file():
    assert message_of(FileNotFoundError(2, "No such file", "a.txt")) == "a.txt: No such file"
    assert message_of(tf.errors.DataLossError(None, None, "first\nsecond")) == "first"
    assert message_of(ValueError()) == "ValueError"
