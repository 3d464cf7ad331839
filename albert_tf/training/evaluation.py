"""Held-out evaluation of a model on one or more data sets, and of checkpoints as they appear."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

import tensorflow as tf

from albert_tf.checkpoints import literal_paths
from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from albert_tf.models.objectives import Objective
from albert_tf.training.checkpoint_files import checkpoints_dir, find, path_of
from albert_tf.training.memory import check_evaluation_memory
from albert_tf.training.report.metrics_file import read_metrics
from albert_tf.training.report.progress import Reporter, StepCost
from albert_tf.training.steps import Data, Stepper

_LARGEST_EXPONENT = 709.0  # The largest for a float; a model that has diverged may exceed it.
_POLL_SECONDS = 1.0


class HeldOutScores(Protocol):
    """An evaluation: calling it returns held-out figures by name; `metrics` are these names."""

    @property
    def metrics(self) -> tuple[str, ...]: ...

    def __call__(self) -> dict[str, float]: ...


class Evaluator:
    """Evaluates a model on several objectives, each with data of its own.

    A model trained on one sentence objective may be evaluated on another (Lan et al., section 4.6).
    If several objectives have a figure of one name, such as `loss`, that of the first is reported.
    `metrics` are the names of the figures.
    """

    def __init__(
        self, parts: Sequence[tuple[Objective, Data]], strategy: tf.distribute.Strategy
    ) -> None:
        self._parts = []
        names: dict[str, None] = {"loss": None}  # In order, each once.
        for objective, data in parts:
            stepper = Stepper(objective, None, strategy)
            self._parts.append((stepper, stepper.distribute(data)))
            names |= dict.fromkeys(objective.metrics)
        derived = ["masked_lm_perplexity"] if "masked_lm_loss" in names else []
        self.metrics: tuple[str, ...] = (*names, *derived)

    def __call__(self) -> dict[str, float]:
        """Figures by name."""
        figures: dict[str, float] = {}
        for stepper, batches in self._parts:
            figures = {**stepper.evaluate(batches), **figures}
        if "masked_lm_loss" in figures:
            exponent = min(figures["masked_lm_loss"], _LARGEST_EXPONENT)
            figures["masked_lm_perplexity"] = math.exp(exponent)
        return {name: figures[name] for name in self.metrics}


def evaluation_batch_size(
    config: AlbertConfig,
    batch_size: int,
    max_seq_length: int,
    num_examples: int,
    strategy: tf.distribute.Strategy,
) -> int:
    """The global batch size of evaluation steps: the smaller of `batch_size` and the number of
    examples, rounded up to a multiple of the number of replicas: on 8 replicas 104 for 100, and 32
    for 30 examples. Raises UserError if a batch does not fit into this machine's memory.
    """
    replicas = strategy.num_replicas_in_sync
    batch_size = -(-min(batch_size, num_examples) // replicas) * replicas
    check_evaluation_memory(config, batch_size, max_seq_length, strategy)
    return batch_size


def print_comparison(title: str, figures: Mapping[str, tuple[float, float, str]]) -> None:
    """Prints figures next to baselines: name -> (figure, baseline, the baseline's name)."""
    print(f"{title}\n  {'':<26} {'model':>8} {'baseline':>9}")
    for name, (figure, baseline, kind) in figures.items():
        print(f"  {name:<26} {figure:8.4f} {baseline:9.4f}  ({kind})")


def evaluate_checkpoints(
    model: keras.Model, evaluator: Evaluator, run_dir: str, last_step: int, timeout: float
) -> dict[str, float]:
    """Evaluates a run's checkpoints as they appear, only the newest of several new ones, until that
    of `last_step`, or until none has appeared for `timeout` seconds. Writes the figures to the
    run's folder continuous_eval and returns the last ones, {} if no checkpoint appeared.
    """
    folder = os.path.join(run_dir, "continuous_eval")
    tf.io.gfile.makedirs(folder)
    reporter = Reporter(folder, (), evaluator.metrics, last_step, last_step, StepCost(0))
    rows = read_metrics(os.path.join(folder, "metrics.csv"))
    written = {int(row["step"]) for row in rows}  # By an earlier call that was interrupted.
    checkpoint = tf.train.Checkpoint(model=model)
    figures: dict[str, float] = {}
    try:
        seen, last_time = -1, time.monotonic()
        while seen < last_step and time.monotonic() - last_time < timeout:
            step = max(find(checkpoints_dir(run_dir)), default=seen)
            # Wait if it cannot be read: it may be half written, just removed because it is old, or
            # damaged.
            if step == seen or not _can_be_read(
                checkpoint, path_of(checkpoints_dir(run_dir), step)
            ):
                time.sleep(_POLL_SECONDS)
                continue
            figures = evaluator()
            if step not in written:
                reporter.evaluation(step, figures)
            seen, last_time = step, time.monotonic()
    finally:
        reporter.close()
    return figures


def _can_be_read(checkpoint: tf.train.Checkpoint, path: str) -> bool:
    """Restores a checkpoint; returns whether it exists and is complete."""
    try:
        with literal_paths.literal(path) as readable:
            checkpoint.read(readable).expect_partial().assert_existing_objects_matched()
    except (tf.errors.OpError, IndexError):  # IndexError: a file is too short.
        return False
    return True
