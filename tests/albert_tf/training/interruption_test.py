"""run_pretraining, killed at any moment, goes on and ends with the same bits as without a kill.

The real program, with the real input pipeline: dynamic masks, dropout, evaluations, best models.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.run_results import check_tensors, figures


def child_of(process: subprocess.Popen) -> int | None:
    """The process that trains, under the one that starts it again; None while there is none."""
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        # Another child keeps TensorFlow's notes off the terminal.
        training = [
            int(child)
            for child in children
            if b"--max_failures=0" in Path(f"/proc/{child}/cmdline").read_bytes()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return training[0] if training else None


def wait_until(is_so: Callable[[], bool], process: subprocess.Popen) -> None:
    while not is_so():
        assert process.poll() is None, "the run ended before it was killed"
        time.sleep(0.002)


def kill_again_and_again(process: subprocess.Popen, run_dir: Path, num_kills: int) -> int:
    """Kills the training: by turns while it saves, between two saves, and while it starts.

    Returns:
      How many kills hit a save.
    """
    folder, rng, hits, killed = run_dir / "checkpoints", random.Random(5), 0, None
    for kill in range(num_kills):
        wait_until(lambda last=killed: child_of(process) not in (None, last), process)
        before = newest(folder)
        if kill % 3 == 0:
            wait_until(lambda last=before: is_saving(folder) and newest(folder) > last, process)
        elif kill % 3 == 1:
            wanted = before + rng.choice([2, 4])
            wait_until(lambda wanted=wanted: newest(folder) >= wanted, process)
        else:
            time.sleep(rng.uniform(0.0, 3.0))
        killed = child_of(process)
        os.kill(killed, signal.SIGKILL)
        hits += is_saving(folder)
    return hits


def newest(folder: Path) -> int:
    return max([int(path.stem[5:]) for path in folder.glob("step-*.index")], default=0)


def is_saving(folder: Path) -> bool:
    return any(folder.glob("*_unfinished"))


@pytest.mark.parametrize(
    ("num_kills", "num_steps", "fast"),
    [(1, 42, "off"), pytest.param(24, 240, "auto", marks=pytest.mark.long)],
)
def test_killed_at_many_moments(
    num_kills, num_steps, fast, pretraining_command, start_program, work, tmp_path
):
    whole, killed = tmp_path / "whole", tmp_path / "run"
    flags = {
        "num_train_steps": num_steps,
        "checkpoint_steps": 2,
        "eval_steps": 6,
        "eval_data": work / "sop",
        "fast": fast,
    }
    process = start_program(pretraining_command(**flags, max_failures=num_kills), fresh=True)
    reference = start_program(pretraining_command(**flags, output_dir=whole))
    with ThreadPoolExecutor() as readers:  # Nobody waits for a full pipe.
        futures = [readers.submit(program.communicate) for program in (process, reference)]
        hits = kill_again_and_again(process, killed, num_kills)
        outputs = [future.result() for future in futures]
    outputs = [output for output, _ in outputs]
    for program, output in zip((process, reference), outputs):
        assert program.returncode == 0, output[-4000:]
    print(f"killed {num_kills} times, {hits} of them during a save")

    check_tensors(*(folder / f"checkpoints/step-{num_steps}" for folder in (killed, whole)))
    for model in ("model", "best_model"):
        names = sorted(path.name for path in (whole / model).iterdir())
        assert names == sorted(path.name for path in (killed / model).iterdir())
        for name in names:
            assert (whole / model / name).read_bytes() == (killed / model / name).read_bytes()
    assert figures(killed) == figures(whole)
    assert len(figures(whole)) == num_steps // 2 + num_steps // 6
    assert not list(killed.glob("*.partial")) and not list(killed.glob("checkpoints/*_*"))
    assert f"failure {num_kills} of {num_kills} allowed" in outputs[0]
    assert "resuming at step" in outputs[0]
