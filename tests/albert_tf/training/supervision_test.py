"""A command is run again when it dies, and only then."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from albert_tf.training.supervision import supervise

# Appends its arguments to a file, and ends as the line says whose number this attempt has.
PROGRAM = """
import os, sys
with open({log!r}, "a+") as file:
    print(*sys.argv[1:], file=file)
    file.seek(0)
    attempt = len(file.readlines())
code = {codes}[attempt - 1]
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


def attempts(tmp_path, codes, max_failures):
    log = tmp_path / "log"
    program = PROGRAM.format(log=str(log), codes=codes)
    code = supervise([sys.executable, "-c", program, "--x=1"], max_failures)
    return code, log.read_text().splitlines()


@pytest.mark.parametrize("last", [0, 2, 75, 130])
def test_until_it_ends(tmp_path, last):
    code, lines = attempts(tmp_path, [1, -9, last, 0], max_failures=5)
    assert code == last
    assert lines == [
        "--x=1 --max_failures=0",
        *["--x=1 --max_failures=0 --overwrite=false"] * 2,
    ]


def test_not_more_often_than_allowed(tmp_path, capfd):
    code, lines = attempts(tmp_path, [3, 1, -9], max_failures=2)
    assert code == 128 + 9
    assert len(lines) == 3
    shown = capfd.readouterr().err
    assert "exit code 3); failure 1 of 2" in shown and "failure 2 of 2" in shown


def test_sigterm_is_passed_on(tmp_path):
    child = (
        "import signal, sys, time, pathlib\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))\n"
        f"pathlib.Path({str(tmp_path / 'ready')!r}).touch()\n"
        "time.sleep(60)"
    )
    parent = (
        "import sys; from albert_tf.training.supervision import supervise\n"
        f"sys.exit(supervise([sys.executable, '-c', {child!r}], 3))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    process = subprocess.Popen([sys.executable, "-c", parent], env=environment)
    try:
        while not (tmp_path / "ready").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 75
    finally:
        process.kill()
