"""A command is run again when it dies, and only then."""

import os
import signal
import subprocess
import sys
import time

import pytest
import tensorflow as tf

from albert_tf.training import failures
from albert_tf.training.supervision import run_supervised, supervise

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


def attempts(tmp_path, codes, max_failures, pause_seconds=0.01):
    log = tmp_path / "log"
    program = PROGRAM.format(log=str(log), codes=codes)
    command = [sys.executable, "-c", program, "--x=1"]
    code = supervise(command, max_failures, str(tmp_path), pause_seconds)
    return code, log.read_text().splitlines()


@pytest.mark.parametrize("code", [failures.STORAGE_FAILED, failures.WORKER_LOST])
def test_after_a_failure_of_the_machine(tmp_path, capfd, code):
    assert attempts(tmp_path, [code, code, 0], max_failures=2)[0] == 0
    shown = capfd.readouterr().err
    assert f"exit code {code}); failure 2 of 2" in shown
    assert ("last checkpoint in " in shown) == (code == failures.STORAGE_FAILED)


LOST = """Graph execution error:

Detected at node while/CollectiveReduceV2_2 defined at (most recent call last):
Collective ops is aborted by: Connection reset by peer
Additional GRPC error information from remote target /job:worker/replica:0/task:1"""
FULL = (
    "{{function_node __wrapped__SaveV2_dtypes_100_device_/job:localhost/device:CPU:0}} run/"
    "checkpoints/step-8.data; No space left on device [Op:SaveV2]"
)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            tf.errors.ResourceExhaustedError(None, None, FULL),
            failures.STORAGE_FAILED,
            "the disk is full: run/checkpoints/step-8.data; No space left on device. Make room",
        ),
        (tf.errors.UnavailableError(None, None, LOST), failures.WORKER_LOST, "another worker is"),
    ],
)
def test_a_failure_of_the_machine_is_one_sentence(capsys, error, code, said):
    def main():
        raise error

    with pytest.raises(SystemExit) as ended:
        run_supervised(main, 0, ".")
    assert ended.value.code == code
    shown = capsys.readouterr().err
    assert said in shown and shown.count("\n") == 1 and "{{" not in shown and "[Op" not in shown


@pytest.mark.parametrize(
    "error", [tf.errors.ResourceExhaustedError(None, None, "OOM"), KeyError("x"), OSError(2, "no")]
)
def test_other_errors_are_not_touched(error):
    def main():
        raise error

    with pytest.raises(type(error)):
        run_supervised(main, 0, ".")


@pytest.mark.parametrize("last", [0, 2, 75, 130])
def test_until_it_ends(tmp_path, last):
    code, lines = attempts(tmp_path, [1, -9, last, 0], max_failures=5)
    assert code == last
    assert lines == ["--x=1 --max_failures=0", *["--x=1 --max_failures=0"] * 2]


def test_overwrite_counts_until_there_is_a_new_run(tmp_path):
    """Or an attempt that dies at once would leave the old run, and the next would continue it."""
    run_file, log = tmp_path / "run.json", tmp_path / "log"
    run_file.touch()
    os.utime(run_file, (1, 1))
    begins = f"attempt == 2 and open({str(run_file)!r}, 'w').close()\n"
    program = PROGRAM.format(log=str(log), codes=[1, 1, 0]).replace("code =", begins + "code =")
    supervise([sys.executable, "-c", program, "--overwrite"], 5, str(tmp_path))
    assert log.read_text().splitlines() == [
        *["--overwrite --max_failures=0"] * 2,
        "--overwrite --max_failures=0 --overwrite=false",
    ]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_a_signal_in_the_pause_after_a_full_disk(tmp_path, monkeypatch, number, code):
    monkeypatch.setattr(time, "sleep", lambda seconds: os.kill(os.getpid(), number))
    before = signal.signal(number, lambda *_: None)
    try:
        ended, lines = attempts(tmp_path, [failures.STORAGE_FAILED, 0], 5, pause_seconds=600)
    finally:
        signal.signal(number, before)
    assert ended == code and len(lines) == 1


def test_not_more_often_than_allowed(tmp_path, capfd):
    code, lines = attempts(tmp_path, [3, 1, -9], max_failures=2)
    assert code == 128 + 9
    assert len(lines) == 3
    shown = capfd.readouterr().err
    assert "exit code 3); failure 1 of 2" in shown and "failure 2 of 2" in shown


@pytest.mark.parametrize("handler", ["lambda *_: sys.exit(75)", "signal.SIG_DFL"])
def test_sigterm_is_passed_on(tmp_path, quick_python, handler):
    """To a child that trains, and to one that starts and does not listen yet."""
    child = (
        "import signal, sys, time, pathlib\n"
        f"signal.signal(signal.SIGTERM, {handler})\n"
        f"pathlib.Path({str(tmp_path / 'ready')!r}).touch()\n"
        "time.sleep(60)"
    )
    parent = (
        "import sys; from albert_tf.training.supervision import supervise\n"
        f"sys.exit(supervise([sys.executable, '-c', {child!r}], 3, '.'))"
    )
    process = subprocess.Popen([quick_python, "-c", parent])
    try:
        while not (tmp_path / "ready").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 75
    finally:
        process.kill()
