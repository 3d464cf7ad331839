"""`train`: the loop of a run with all its hooks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

import tensorflow as tf

from albert_tf.training.checkpoint_files import check_steps, checkpoints_dir
from albert_tf.training.evaluation import HeldOutScores
from albert_tf.training.hooks.bad_steps import BadSteps
from albert_tf.training.hooks.checkpoints import Checkpoints, go_back
from albert_tf.training.hooks.deadline import Deadline, DeadlineHook
from albert_tf.training.hooks.evaluation import Evaluation
from albert_tf.training.hooks.preemption import Preemption, read_totals
from albert_tf.training.hooks.reports import Reports
from albert_tf.training.loop import Callbacks, Loop, Run
from albert_tf.training.preemption import StopRequest
from albert_tf.training.report.curves import plot_curves
from albert_tf.training.report.metrics_file import METRICS_FILE, read_metrics
from albert_tf.training.report.progress import Reporter, SilentReporter, StepCost
from albert_tf.training.settings import LoopSettings
from albert_tf.training.state import TrainingState
from albert_tf.training.steps import Stepper
from albert_tf.training.strategy import is_chief


def train(
    stepper: Stepper,
    training_data: Callable[..., tf.data.Dataset],
    evaluator: HeldOutScores | None,
    settings: LoopSettings,
    run_dir: str,
    cost: StepCost,
    callbacks: Callbacks | None = None,
    decay_start: int | None = None,
    deadline: Deadline | None = None,
) -> dict[str, float]:
    """Trains until `num_train_steps`, resuming from the run folder's newest checkpoint if there is
    one.

    Args:
      stepper: the training steps.
      training_data: called with `start_step=`, and with `input_context=` where several hosts read;
        endless batches from that step on.
      evaluator: computes the held-out figures; None: there are none.
      settings: number of updates, and what is done when.
      run_dir: folder for checkpoints, metrics.csv, TensorBoard files and curves.png.
      cost: of a step, for the progress report.
      callbacks: functions of the program.
      decay_start: step from which the rate falls, whose checkpoint is kept: a run made longer
        later goes on from it. None: no checkpoint is kept.
      deadline: when it is reached before `decay_start`, the loop saves, chooses the end and
        returns; the decay is for another call, with the settings of that end.

    Returns:
      The held-out figures at the end; empty without an evaluator, or when the deadline is reached.

    Raises:
      UserError: a checkpoint that does not fit, or of a later step than the last; or too many steps
        that are not finite.
      Preempted: SIGTERM or Ctrl-C came; everything is saved, unless the last step was left out.
    """
    check_steps(run_dir, settings.num_train_steps)
    stepper.stop(False)
    if decay_start is not None and is_chief(stepper.strategy):
        go_back(run_dir, decay_start)
    with contextlib.ExitStack() as stack:
        request = stack.enter_context(StopRequest())
        state = stack.enter_context(_state(stepper, settings, run_dir))
        reporter = _reporter(stepper, evaluator, settings, run_dir, state.step, cost)
        stack.enter_context(contextlib.closing(reporter))
        run = Run(stepper, state, settings, run_dir, reporter, callbacks or Callbacks())
        # Their order decides what an interruption costs: report, evaluate, save.
        evaluation = Evaluation(run, evaluator)
        # metrics.csv up to a checkpoint's step has to be safe before the checkpoint is.
        before_save = [reporter.sync, *([deadline.record] if deadline else [])]
        checkpoints = Checkpoints(run, decay_start, before_save)
        preemption = Preemption(run, request, evaluation, checkpoints)
        in_time = [DeadlineHook(run, deadline, decay_start)] if deadline else []
        hooks = [BadSteps(run), Reports(run), evaluation, preemption, *in_time, checkpoints]
        if state.step == 0 and settings.eval_first:
            evaluation.make(0)
        if not Loop(run, hooks).run(training_data, read_totals(run)):
            return {}
        if run.is_chief:
            curves = os.path.join(run_dir, "curves.png")
            plot_curves(os.path.join(run_dir, METRICS_FILE), curves)
        return evaluation.at_the_end()


@contextlib.contextmanager
def _state(stepper: Stepper, settings: LoopSettings, run_dir: str) -> Iterator[TrainingState]:
    """The state of a run, as its newest checkpoint has it; closed when the run ends."""
    with stepper.strategy.scope():
        stepper.optimizer.build(stepper.objective.model.trainable_variables)
        state = TrainingState(
            checkpoints_dir(run_dir),
            stepper.objective.model,
            stepper.optimizer,
            settings.keep_checkpoints,
            stepper.loss_scaling,
            is_chief(stepper.strategy),
            must_match=not {"optimizer", "precision"} & set(settings.allow_changes),
        )
        is_resumed = state.restore()
    if is_chief(stepper.strategy):
        _say_where(run_dir, state.step, is_resumed)
    with contextlib.closing(state):
        yield state


def _say_where(run_dir: str, step: int, is_resumed: bool) -> None:
    """Prints at which step the run begins, unless it is new."""
    rows = read_metrics(os.path.join(run_dir, METRICS_FILE))
    if is_resumed:
        print(f"resuming at step {step}", flush=True)
    elif rows:
        print(
            f"{run_dir} has figures up to step {rows[-1]['step']}, but no checkpoint: starting "
            "again at step 0",
            flush=True,
        )


def _reporter(
    stepper: Stepper,
    evaluator: HeldOutScores | None,
    settings: LoopSettings,
    run_dir: str,
    step: int,
    cost: StepCost,
) -> Reporter | SilentReporter:
    """The reporter of the chief; a silent one on other workers."""
    if not is_chief(stepper.strategy):
        return SilentReporter()
    metrics = evaluator.metrics if evaluator else ()
    return Reporter(
        run_dir, stepper.objective.metrics, metrics, settings.num_train_steps, step, cost
    )
