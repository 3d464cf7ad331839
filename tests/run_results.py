"""What two runs have to have in common: the values of a checkpoint, and the figures."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.training.report.metrics_file import read_metrics


def tensors(prefix: Path) -> dict[str, np.ndarray]:
    """Name -> value of everything in a checkpoint."""
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def check_tensors(found: Path, expected: Path, tolerance: float = 0.0) -> None:
    """Two checkpoints have the same names, and the same bits unless there is a tolerance."""
    values = tensors(found)
    for name, value in tensors(expected).items():
        if tolerance and value.dtype.kind == "f":
            np.testing.assert_allclose(values.pop(name), value, 0, tolerance, err_msg=name)
        else:
            np.testing.assert_array_equal(values.pop(name), value, err_msg=name)
    assert not values


def check_goes_on(again: Callable[[], object], first: object, run: Path) -> None:
    """A fine-tuning run of four updates that loses its last checkpoint and model makes the same."""
    expected = shutil.copytree(run / "last_model", run.with_name("before")) / native.WEIGHTS_PREFIX
    for path in (run / "checkpoints").glob("*4*"):
        path.unlink()
    shutil.rmtree(run / "last_model")
    assert again() == first
    check_tensors(run / "last_model" / native.WEIGHTS_PREFIX, expected)


def figures(run_dir: Path) -> list[dict[str, str]]:
    """All of metrics.csv but how fast the machine was."""
    rows = read_metrics(str(run_dir / "metrics.csv"))
    return [{**row, "tokens_per_second": ""} for row in rows]


def wait_for(path: Path, process: subprocess.Popen) -> None:
    """Until a running program has made a file."""
    while not path.exists():
        assert process.poll() is None, process.communicate()[0][-4000:]
        time.sleep(0.01)
