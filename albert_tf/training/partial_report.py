"""The figures of a run that was stopped between two reports, with which the next report goes on."""

from __future__ import annotations

import os
from collections.abc import Mapping

import tensorflow as tf

from albert_tf import durable
from albert_tf.losses import Ratio
from albert_tf.training import starts

_FILE = "partial_report.json"


def write(run_dir: str, step: int, totals: Mapping[str, Ratio]) -> None:
    """Stores the sums since the last report.

    Args:
      run_dir: folder of the run.
      step: at which the run was stopped.
      totals: of `Outcome`. float32 scalars, which JSON gives back bit by bit:
        {"step": 7, "totals": {"masked_lm_loss": [118.52069091796875, 14.0]}}.
    """
    values = {name: [float(part) for part in ratio] for name, ratio in totals.items()}
    durable.write_json(os.path.join(run_dir, _FILE), {"step": step, "totals": values})


def read(run_dir: str, step: int) -> dict[str, Ratio] | None:
    """The sums of a run that goes on from a step; None where its last report was at that step.

    Raises:
      UserError: the file is damaged.
    """
    path = os.path.join(run_dir, _FILE)
    if not tf.io.gfile.exists(path):
        return None
    remedy = "Delete it, and the next row of metrics.csv is of the updates from here on"
    record = starts.read_run_json(path, remedy)
    if record["step"] != step:
        return None
    return {
        name: Ratio(*(tf.constant(part, tf.float32) for part in parts))
        for name, parts in record["totals"].items()
    }
