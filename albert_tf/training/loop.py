"""`train`: updates up to the next stop in one call of TensorFlow, then what the hooks do there.

One call makes many updates, because Python between two of them would cost more than a small one.
All that has to happen at a certain step, such as a checkpoint, therefore has to be a stop.
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
from albert_tf.training.hooks.preemption import Preemption, read_totals
from albert_tf.training.preemption import StopRequest
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
      data_changes: steps at which `training_data` is called again, since from there on batches have
        another size.

    Returns:
      The held-out figures at the end; empty without an evaluator, or when the deadline is reached.

    Raises:
      UserError: a checkpoint that does not fit, or of a later step than the last; or too many steps
        that are not finite.
      Preempted: SIGTERM or Ctrl-C came; everything is saved, unless the last step was left out.
    """
    check_steps(run_dir, settings.num_train_steps)
    stepper.stop(False)  # A signal may have stopped it in an earlier run.
    # Before the state is read: going back removes the checkpoints that it would be read from.
    if decay_start is not None and is_chief(stepper.strategy):
        go_back(run_dir, decay_start)
    with contextlib.ExitStack() as stack:
        # The signals first, so that one that comes while the state is read ends the run as well.
        request = stack.enter_context(StopRequest())
        state = stack.enter_context(opened(stepper, settings, run_dir))
        # After the state, since it drops the rows of metrics.csv that come after the state's step.
        names = stepper.objective.metrics, evaluator.metrics if evaluator else ()
        reporter: Reporter | SilentReporter = SilentReporter()
        if is_chief(stepper.strategy):
            reporter = Reporter(run_dir, *names, settings.num_train_steps, state.step, cost)
        stack.enter_context(contextlib.closing(reporter))
        run = Run(stepper, state, settings, run_dir, reporter, callbacks or Callbacks())
        evaluation = Evaluation(run, evaluator)
        hooks = make_hooks(run, request, evaluation, decay_start, deadline)
        # A run that goes on has this row already.
        if state.step == 0 and settings.eval_first:
            evaluation.make(0)
        # The data go on where the weights do: their order, masks and dropout are functions of the
        # step. `totals` are of updates since the last report, where a signal ended the last start.
        step, totals = state.step, read_totals(run)
        batches = None
        while step < settings.num_train_steps:
            # An iterator has batches of one size: their shapes are static, and an update is traced
            # once for each.
            if batches is None or step in data_changes:
                data = functools.partial(training_data, start_step=step)
                batches = iter(stepper.distribute(data))
            for hook in hooks:
                hook.before(step)
            stops = [settings.next_stop(step), *(hook.next_stop(step) for hook in hooks)]
            stops += (change for change in data_changes if change > step)
            first, last, began = step, min(filter(None, stops)), time.monotonic()
            # A tensor: a Python number would be traced anew for every length.
            outcome = stepper.train(batches, tf.constant(last - first), totals)
            # The step is the optimizer's: a signal ends the call after the current update.
            step, totals = state.step, stepper.no_totals()
            seconds = (time.monotonic() - began) / max(step - first, 1)
            stop = Stop(step, outcome, seconds, is_early=step < last)
            for hook in hooks:
                hook.after(stop)
            if stop.end:
                state.wait()  # What ends the run says that the checkpoint is safe.
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
    """The hooks of a run, whose order decides what an interruption costs: judge the weights, then
    report, evaluate and save.
    """
    # A checkpoint says that all before its step is done. So metrics.csv has to be on the disk up to
    # there first: a kill between the two leaves rows that the next start drops and makes again,
    # where the other order would leave out rows forever. The minutes, for the same reason.
    before_save = [run.reporter.sync, *([deadline.record] if deadline else [])]
    checkpoints = Checkpoints(run, decay_start, before_save)
    # An evaluation after the checkpoint would be lost with a kill between them; before it, the next
    # start makes both again. What may need a checkpoint, a signal or the deadline, comes before it.
    hooks = [BadSteps(run), Reports(run), evaluation]
    hooks.append(Preemption(run, request, evaluation, checkpoints))
    if deadline:
        deadline.start(run)  # Loading data and making the model are not training.
        hooks.append(deadline)
    return [*hooks, checkpoints]
