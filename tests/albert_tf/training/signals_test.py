"""SIGTERM and Ctrl-C of run_pretraining: said at once, saved after the current update."""

import re
import signal
import subprocess
import time

import pytest

from albert_tf.errors import UserError
from albert_tf.training import run_folder
from tests.run_results import check_tensors, figures, wait_for

# Reports are so far apart that a run stops between two of them, and so are checkpoints.
FLAGS = {"num_train_steps": 600, "steps_per_loop": 200, "checkpoint_steps": 200}


def line_with(text: str, process: subprocess.Popen) -> str:
    """The next line of the output that has a text."""
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"no line has {text!r}")


def stop(process: subprocess.Popen, number: int, code: int, name: str) -> int:
    """Sends a signal to a run; returns the step that it is saved at."""
    process.send_signal(number)
    said = line_with(f"{name}: the run ends after update ", process)
    assert re.search(r"update \d+ \(about \d\.\d seconds\), and saves", said), said
    output = process.communicate(timeout=60)[0]
    assert process.returncode == code and "Traceback" not in output, output[-4000:]
    return int(re.search(rf"stopped by {name} at step (\d+); run the same command", output)[1])


def stop_twice(process: subprocess.Popen, number: int, code: int, newest: str) -> None:
    """Two signals in the first update of a start, which takes seconds to compile."""
    process.send_signal(number)
    assert ", which is compiled first, and saves" in line_with("the run ends after", process)
    process.send_signal(number)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == code, output[-4000:]
    assert f"again: ended at once; {newest}; run the same command to go on" in output
    assert "Traceback" not in output and "interrupted" not in output


SIGNALS = ((signal.SIGTERM, 75, "SIGTERM", 200), (signal.SIGINT, 130, "Ctrl-C", 400))


@pytest.mark.parametrize(
    "signals",
    [SIGNALS[:1], pytest.param(SIGNALS, marks=pytest.mark.table)],
    ids=["SIGTERM", "both, and a second one"],
)
def test_a_signal_stops_after_the_update_and_changes_nothing(
    pretraining_command, start_program, tmp_path, signals
):
    """A run that is stopped ends with the bits and rows of one that was not, whatever the seed of
    hashes. With dynamic masks and dropout.
    """
    run, whole = tmp_path / "run", tmp_path / "whole"
    command = pretraining_command(**FLAGS)
    reference = start_program(pretraining_command(**FLAGS, output_dir=whole))
    for number, code, name, last in signals:
        process = start_program(command, fresh=last == 200)
        wait_for(run / "checkpoints" / f"step-{last}.index", process)
        if last == 200:
            with pytest.raises(UserError, match=f"in use by process {process.pid} on "):
                run_folder.claim(str(run), None, {}, {}, overwrite=True)
        step = stop(process, number, code, name)
        assert step > last and step % 200, step
        assert (run / "checkpoints" / f"step-{step}.index").exists()

    if signals == SIGNALS:
        before = (run / "metrics.csv").stat().st_mtime_ns
        process = start_program(command)
        while (run / "metrics.csv").stat().st_mtime_ns == before:  # Written when the loop begins.
            assert process.poll() is None, process.communicate()[0][-4000:]
            time.sleep(0.01)
        stop_twice(process, signal.SIGTERM, 75, f"the newest checkpoint is of step {step}")

    for process in (start_program(command), reference):
        output = process.communicate(timeout=300)[0]
        assert process.returncode == 0, output[-4000:]
        assert (f"resuming at step {step}" in output) == (process is not reference)
    check_tensors(run / "checkpoints/step-600", whole / "checkpoints/step-600")
    assert figures(run) == figures(whole)
    assert [row["step"] for row in figures(run)] == ["200", "400", "600"]


def test_a_second_signal_before_there_is_a_checkpoint(pretraining_command, start_program, tmp_path):
    process = start_program(pretraining_command(**FLAGS))
    wait_for(tmp_path / "run" / "metrics.csv", process)
    stop_twice(process, signal.SIGINT, 130, "there is no checkpoint yet")
