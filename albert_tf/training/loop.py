"""The one training loop."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.training.curves import plot_curves
from albert_tf.training.reporting import METRICS_FILE, Reporter
from albert_tf.training.state import TrainingState
from albert_tf.training.steps import Stepper


@dataclasses.dataclass(frozen=True)
class LoopSettings:
    """How a run proceeds; all figures but `keep_checkpoints` are in steps.

    Attributes:
      num_train_steps: updates in all.
      steps_per_loop: updates between two looks at the figures, run without returning to Python.
      checkpoint_steps: updates between two checkpoints.
      eval_steps: updates between two evaluations; 0 evaluates at the end only.
      keep_checkpoints: how many of the newest checkpoints are kept.
    """

    num_train_steps: int
    steps_per_loop: int = 10
    checkpoint_steps: int = 1000
    eval_steps: int = 0
    keep_checkpoints: int = 3

    def __post_init__(self) -> None:
        for name in ("num_train_steps", "steps_per_loop", "checkpoint_steps", "keep_checkpoints"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name}={getattr(self, name)} is not a positive number.")
        if self.eval_steps < 0:
            raise UserError(
                f"--eval_steps={self.eval_steps} is negative; 0 evaluates at the end only."
            )

    def next_stop(self, step: int) -> int:
        """The next step after `step` at which something is reported, saved or evaluated."""
        periods = [self.steps_per_loop, self.checkpoint_steps] + (
            [self.eval_steps] if self.eval_steps else []
        )
        return min(self.num_train_steps, *(step - step % period + period for period in periods))

    def is_due(self, step: int, period: int) -> bool:
        """Whether something done every `period` steps (0: never) and at the end is to be done at
        `step`.
        """
        return step == self.num_train_steps or (period > 0 and step % period == 0)


def train(
    stepper: Stepper,
    training_data: Callable[..., tf.data.Dataset],
    evaluation_data: tf.data.Dataset | None,
    settings: LoopSettings,
    run_dir: str,
    tokens_per_step: int,
    on_evaluation: Callable[[int, dict[str, float]], None] | None = None,
) -> dict[str, float]:
    """Trains until `num_train_steps`, resuming from the run folder's newest checkpoint if there is
    one.

    Args:
      stepper: task, optimizer and strategy.
      training_data: called with `start_step=`; endless global batches from that step on.
      evaluation_data: batches of held-out data, or None.
      run_dir: where checkpoints, metrics.csv, TensorBoard files and curves.png go.
      tokens_per_step: tokens of a global batch, for the progress report.
      on_evaluation: called with (step, metrics) after each evaluation, e.g. to keep the best model.

    Returns:
      The metrics on the evaluation data at the end; empty without such data.

    Raises:
      UserError: a checkpoint that does not fit, or a loss that is not finite.
    """
    checkpoints = os.path.join(run_dir, "checkpoints")
    with stepper.strategy.scope():
        stepper.optimizer.build(stepper.task.model.trainable_variables)
        state = TrainingState(
            checkpoints, stepper.task.model, stepper.optimizer, settings.keep_checkpoints
        )
        if state.restore():
            print(f"resuming at step {state.step} from {state.latest}", flush=True)
    evaluated: dict[str, float] = {}
    reporter = Reporter(
        run_dir, stepper.task.metrics, settings.num_train_steps, state.step, tokens_per_step
    )
    iterator = iter(stepper.distribute(training_data(start_step=state.step)))
    try:
        while state.step < settings.num_train_steps:
            step = settings.next_stop(state.step)
            metrics = stepper.train(iterator, tf.constant(step - state.step))
            metrics = {name: float(value) for name, value in metrics.items()}
            _check_finite(step, metrics, state.latest)
            reporter.train(step, metrics)
            if evaluation_data and settings.is_due(step, settings.eval_steps):
                evaluated = stepper.evaluate(evaluation_data)
                reporter.evaluation(step, evaluated)
                if on_evaluation:
                    on_evaluation(step, evaluated)
            # After the evaluation, so that a run interrupted in between makes it again.
            if settings.is_due(step, settings.checkpoint_steps):
                state.save()
    finally:
        reporter.close()
    plot_curves(os.path.join(run_dir, METRICS_FILE), os.path.join(run_dir, "curves.png"))
    if evaluation_data and not evaluated:  # The run was complete before.
        evaluated = stepper.evaluate(evaluation_data)
    return evaluated


def _check_finite(step: int, metrics: dict[str, float], latest: str | None) -> None:
    if not math.isfinite(metrics["loss"]):
        raise UserError(
            f"the loss is {metrics['loss']} at step {step}; last good checkpoint: {latest}. Lower "
            "--learning_rate or lengthen the warm-up."
        )
