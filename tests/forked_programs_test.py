"""Forked programs end, answer and are killed as those that Python starts."""

from __future__ import annotations

import signal
import subprocess

import pytest

SHOWN = """
import os, sys
assert "tensorflow" in sys.modules and __name__ == "__main__"
print(os.getcwd(), os.environ["KIND"], "PATH" in os.environ, sys.argv, sys.stdin.read())
print("trouble", file=sys.stderr)
sys.exit(7)
"""
TOLD_BY_A_SIGNAL = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *unused: sys.exit(75))
print(os.getpid(), flush=True)
for _ in range(1000):
    time.sleep(0.1)  # Not once for long: a signal may come just before it.
"""


def test_files_folder_environment_arguments_and_exit_code(quick_python, tmp_path):
    ended = subprocess.run(
        [quick_python, "-c", SHOWN, "--x=1"],
        cwd=tmp_path, env={"KIND": "mine"}, input="typed", capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 7 and ended.stderr == "trouble\n"
    assert ended.stdout == f"{tmp_path} mine False ['-c', '--x=1'] typed\n"


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 75), (signal.SIGKILL, -9)])
def test_signals_reach_the_program(quick_python, number, code):
    """It is gone as well, even where nobody could pass the signal on."""
    client = subprocess.Popen([quick_python, "-c", TOLD_BY_A_SIGNAL], stdout=subprocess.PIPE)
    program = int(client.stdout.readline())
    assert program != client.pid
    client.send_signal(number)
    assert client.wait(60) == code
    # The end of the output is seen when nobody can write any more.
    assert client.communicate(timeout=60)[0] == b""


def test_nothing_was_computed_in_the_server(quick_python):
    """TensorFlow does not survive a fork once its devices are there."""
    program = """
import tensorflow as tf
from tensorflow.python.eager import context
assert not context.context()._initialized
options = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], options)
assert len(tf.config.list_logical_devices("CPU")) == 2
assert float(tf.reduce_sum(tf.matmul(tf.ones([64, 64]), tf.ones([64, 64])))) == 64.0**3
"""
    assert subprocess.call([quick_python, "-c", program]) == 0
