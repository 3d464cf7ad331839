"""`train`: one call of TensorFlow makes all updates up to the next stop, where the hooks run.

One call makes many updates, because running Python between them may cost more than an update. So
anything that has to happen at a certain step, such as a checkpoint, needs a stop there.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Sequence

import tensorflow as tf

from albert_tf.training.checkpoint_files import check_steps
from albert_tf.training.evaluation import HeldOutScores
from albert_tf.training.hooks.bad_steps import BadSteps
from albert_tf.training.hooks.base import Callbacks, Hook, Run, Stop
from albert_tf.training.hooks.checkpoints import Checkpoints, go_back
from albert_tf.training.hooks.deadline import Deadline
from albert_tf.training.hooks.figures import Evaluation, Reports
from albert_tf.training.hooks.preemption import Preemption, StopRequest, read_totals
from albert_tf.training.report.metrics_file import METRICS_FILE, plot_curves
from albert_tf.training.report.progress import Reporter, SilentReporter, StepCost
from albert_tf.training.settings import LoopSettings
from albert_tf.training.state import opened
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
    data_changes: Sequence[int] = (),
) -> dict[str, float]:
    """Trains until `num_train_steps`, resuming from the run folder's newest checkpoint if there is
    one.

    Args:
      stepper: the training steps.
      training_data: function of `start_step=`, and of `input_context=` if several hosts read;
        returns endless batches from that step on.
      evaluator: computes the held-out figures; None: there are none.
      settings: number of updates, and when to report, save and evaluate.
      run_dir: folder for checkpoints, metrics.csv, TensorBoard files and curves.png.
      cost: of a step, for the progress report.
      callbacks: functions of the program.
      decay_start: step from which the learning rate falls; its checkpoint is kept, so that a longer
        run can resume from it. None: no checkpoint is kept.
      deadline: if it is reached before `decay_start`, the loop saves, chooses the last step and
        returns; the decay takes another call, with the settings for that last step.
      data_changes: steps at which `training_data` is called again, because the batch size changes.

    Returns:
      The held-out figures at the end; empty without an evaluator, or when the deadline is reached.

    Raises:
      UserError: a checkpoint does not fit or is of a later step than the last, or too many steps
        are not finite.
      Preempted: SIGTERM or Ctrl-C came; everything is saved, unless the last step was skipped.
    """
    check_steps(run_dir, settings.num_train_steps)
    stepper.stop(False)  # A signal may have stopped it in an earlier run.
    # Before the state is read: `go_back` removes checkpoints that it would be read from.
    if decay_start is not None and is_chief(stepper.strategy):
        go_back(run_dir, decay_start)
    with contextlib.ExitStack() as stack:
        # Signals first, so that one that arrives while the state is read ends the run, too.
        request = stack.enter_context(StopRequest())
        state = stack.enter_context(opened(stepper, settings, run_dir))
        # After the state: the reporter drops rows of metrics.csv that are later than its step.
        names = stepper.objective.metrics, evaluator.metrics if evaluator else ()
        reporter: Reporter | SilentReporter = SilentReporter()
        if is_chief(stepper.strategy):
            reporter = Reporter(run_dir, *names, settings.num_train_steps, state.step, cost)
        stack.enter_context(contextlib.closing(reporter))
        run = Run(stepper, state, settings, run_dir, reporter, callbacks or Callbacks())
        evaluation = Evaluation(run, evaluator)
        hooks = make_hooks(run, request, evaluation, decay_start, deadline)
        # A resumed run has this row already.
        if state.step == 0 and settings.eval_first:
            evaluation.make(0)
        # The data resume at the step of the weights: order, masks and dropout are functions of it.
        # If a signal ended the last start, `totals` are the sums since its last report.
        step, totals = state.step, read_totals(run)
        batches = None
        while step < settings.num_train_steps:
            # Each iterator has batches of one size, so that shapes are static, and an update is
            # traced once per size.
            if batches is None or step in data_changes:
                data = functools.partial(training_data, start_step=step)
                batches = iter(stepper.distribute(data))
            for hook in hooks:
                hook.before(step)
            stops = [settings.next_stop(step), *(hook.next_stop(step) for hook in hooks)]
            stops += (change for change in data_changes if change > step)
            first, last, began = step, min(filter(None, stops)), time.monotonic()
            # A tensor: a Python number would cause retracing for every value.
            outcome = stepper.train(batches, tf.constant(last - first), totals)
            # Read from the optimizer: a signal ends the call after the current update.
            step, totals = state.step, stepper.no_totals()
            seconds = (time.monotonic() - began) / max(step - first, 1)
            stop = Stop(step, outcome, seconds, is_early=step < last)
            for hook in hooks:
                hook.after(stop)
            if stop.end:
                state.wait()  # `end` relies on the checkpoint being on disk.
                stop.end()
                return {}
        state.wait()
        if run.is_chief:
            plot_curves(os.path.join(run_dir, METRICS_FILE), os.path.join(run_dir, "curves.png"))
        return evaluation.at_the_end()


def make_hooks(
    run: Run,
    request: StopRequest,
    evaluation: Evaluation,
    decay_start: int | None,
    deadline: Deadline | None,
) -> list[Hook]:
    """The hooks of a run. Their order decides what an interruption costs: check the weights, then
    report, evaluate and save.
    """
    # A checkpoint implies that all work up to its step is done, so metrics.csv has to be on disk
    # first. A kill between the two leaves rows that the next start drops and writes again; in the
    # other order, rows would be missing forever. The same holds for the minutes.
    before_save = [run.reporter.sync, *([deadline.record] if deadline else [])]
    checkpoints = Checkpoints(run, decay_start, before_save)
    # A kill between a checkpoint and a later evaluation would lose the evaluation; in this order,
    # the next start makes both again. Hooks that may need a checkpoint come before it.
    hooks = [BadSteps(run), Reports(run), evaluation]
    hooks.append(Preemption(run, request, evaluation, checkpoints))
    if deadline:
        deadline.start(run)  # Loading data and making the model are not training.
        hooks.append(deadline)
    return [*hooks, checkpoints]
