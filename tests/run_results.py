"""What two runs have to have in common: the values of a checkpoint, and the figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

from albert_tf.training.report.metrics_file import read_metrics


def tensors(prefix: Path) -> dict[str, np.ndarray]:
    """Name -> value of everything in a checkpoint."""
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def figures(run_dir: Path) -> list[dict[str, str]]:
    """All of metrics.csv but how fast the machine was."""
    rows = read_metrics(str(run_dir / "metrics.csv"))
    return [{**row, "tokens_per_second": ""} for row in rows]
