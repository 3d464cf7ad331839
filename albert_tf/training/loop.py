"""The training loop: updates, and between them reports, evaluations, checkpoints."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections.abc import Callable
from typing import NoReturn

import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.losses import Ratio
from albert_tf.optimization.base import AdamFamily
from albert_tf.training import before_decay, partial_report
from albert_tf.training.checkpoint_files import check_steps, checkpoints_dir, whole
from albert_tf.training.deadline import ENDING_FILE, Deadline
from albert_tf.training.evaluation import HeldOutScores
from albert_tf.training.preemption import Preempted, StopRequest
from albert_tf.training.report.curves import plot_curves
from albert_tf.training.report.metrics_file import METRICS_FILE, read_metrics
from albert_tf.training.report.progress import Reporter, SilentReporter, StepCost
from albert_tf.training.settings import MAX_BAD_IN_A_ROW, LoopSettings
from albert_tf.training.state import TrainingState
from albert_tf.training.steps import Outcome, Stepper
from albert_tf.training.strategy import is_chief


class Diverged(UserError):
    """Loss, gradient or weights of a run are not finite."""


@dataclasses.dataclass(frozen=True)
class Hooks:
    """Functions that a program adds to the loop; all may be left out.

    Attributes:
      on_evaluation: called with (step, figures) after each evaluation, e.g. to keep the best model.
      examples: returns predictions on held-out data as Markdown, for TensorBoard.
      describe_batch: from a step (1-based) to the file and place that its batch comes from.
      notice: called with (step, figures) after each report; a line to print, or None.
    """

    on_evaluation: Callable[[int, dict[str, float]], None] | None = None
    examples: Callable[[], str] | None = None
    describe_batch: Callable[[int], str] | None = None
    notice: Callable[[int, dict[str, float]], str | None] | None = None


def train(
    stepper: Stepper,
    training_data: Callable[..., tf.data.Dataset],
    evaluator: HeldOutScores | None,
    settings: LoopSettings,
    run_dir: str,
    cost: StepCost,
    hooks: Hooks | None = None,
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
      hooks: functions of the program, called between steps.
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
    with StopRequest() as request:
        loop = _Loop(
            stepper, evaluator, settings, run_dir, cost, hooks or Hooks(), decay_start, deadline
        )
        request.watch(loop)
        try:
            return loop.run(training_data, request)
        finally:
            loop.close()


class _Loop:
    """One run of `train`, whose arguments it takes.

    The order at each stop decides what an interruption can cost: report, evaluate, save. A row of
    metrics.csv of a step after the newest checkpoint is dropped when the run resumes, and made
    again; an evaluation after a checkpoint would be lost.
    """

    def __init__(
        self,
        stepper: Stepper,
        evaluator: HeldOutScores | None,
        settings: LoopSettings,
        run_dir: str,
        cost: StepCost,
        hooks: Hooks,
        decay_start: int | None,
        deadline: Deadline | None,
    ) -> None:
        self._stepper, self._evaluator = stepper, evaluator
        self._settings, self._run_dir, self._hooks = settings, run_dir, hooks
        self._decay_start, self._deadline = decay_start, deadline
        self._num_bad = 0
        self._is_save_due = False
        self._evaluated: dict[str, float] = {}
        self._is_evaluating = False
        self._call = 0, 0.0  # Step and time at which TensorFlow was last called.
        self._seconds: dict[str, float] = {}  # The last duration of an update, of an evaluation.
        self._is_chief = is_chief(stepper.strategy)
        stepper.stop(False)
        check_steps(run_dir, settings.num_train_steps)
        self._go_back()
        with stepper.strategy.scope():
            stepper.optimizer.build(stepper.task.model.trainable_variables)
            self._state = TrainingState(
                checkpoints_dir(run_dir),
                stepper.task.model,
                stepper.optimizer,
                settings.keep_checkpoints,
                stepper.loss_scaling,
                self._is_chief,
                must_match=not {"optimizer", "precision"} & set(settings.allow_changes),
            )
            resumed = self._state.restore()
        self._first = self._last_good = self._last_saved = self._state.step
        self._reporter: Reporter | SilentReporter = SilentReporter()
        if self._is_chief:
            self._say_where(resumed)
            self._reporter = Reporter(
                run_dir,
                stepper.task.metrics,
                evaluator.metrics if evaluator else (),
                settings.num_train_steps,
                self._state.step,
                cost,
            )

    def ask_to_stop(self) -> str:
        """See `Stoppable`; another thread calls it."""
        self._stepper.stop()
        step = self._state.step
        if not self._is_evaluating:
            self._measure(step)
        seconds = self._seconds.get("evaluation" if self._is_evaluating else "update")
        about = "" if seconds is None else f" (about {max(seconds, 0.1):.1f} seconds)"
        if self._is_evaluating:
            return f"the evaluation at step {step}{about}"
        if step == self._first:
            about = ", which is compiled first"
        return f"update {min(step + 1, self._settings.num_train_steps)}{about}"

    def _measure(self, step: int) -> None:
        """Notes the duration of an update; not of those of the first call, which is compiled."""
        first, began = self._call
        if step > first > self._first:
            self._seconds["update"] = (time.monotonic() - began) / (step - first)

    def newest_checkpoint(self) -> int:
        """See `Stoppable`."""
        return max(whole(checkpoints_dir(self._run_dir)), default=0)

    def _go_back(self) -> None:
        """Returns to the checkpoint before the decay, if the decay now begins later."""
        if self._decay_start is None or not self._is_chief:
            return
        step = before_decay.go_back(checkpoints_dir(self._run_dir), self._decay_start)
        if step is not None:
            print(
                f"the decay now begins at step {self._decay_start}: going on from step {step}, "
                "before the former decay, whose updates are made again at the full rate",
                flush=True,
            )

    def _keep_before_decay(self, step: int) -> None:
        """Keeps the checkpoint of the step at which the decay begins, and says so."""
        self._state.wait()
        if not self._is_chief:
            return
        if before_decay.keep(checkpoints_dir(self._run_dir), step):
            text = "its checkpoint is kept: with more num_train_steps the run goes on from here"
        else:
            text = "it has no checkpoint: a longer run cannot go on from here"
        self._reporter.note(f"the learning rate falls from step {step} on; {text}")

    def _say_where(self, resumed: bool) -> None:
        """Prints at which step the run begins, unless it is new."""
        rows = read_metrics(os.path.join(self._run_dir, METRICS_FILE))
        if resumed:
            print(f"resuming at step {self._state.step}", flush=True)
        elif rows:
            print(
                f"{self._run_dir} has figures up to step {rows[-1]['step']}, but no checkpoint: "
                "starting again at step 0",
                flush=True,
            )

    def run(
        self, training_data: Callable[..., tf.data.Dataset], request: StopRequest
    ) -> dict[str, float]:
        """Trains to the end; returns the held-out figures there."""
        step = self._state.step
        totals = self._totals_before(step)
        data = functools.partial(training_data, start_step=step)
        iterator = iter(self._stepper.distribute(data))
        if self._deadline:
            self._deadline.start()
        if step == 0 and self._settings.eval_first:
            self._evaluate(step)
            self._reporter.restart_clock()
        while step < self._settings.num_train_steps:
            if step == self._decay_start and step > 0:
                self._keep_before_decay(step)
            stop = self._next_stop(step)
            self._call = step, time.monotonic()
            outcome = self._stepper.train(iterator, tf.constant(stop - step), totals)
            step, totals = self._state.step, self._stepper.no_totals()
            self._measure(step)
            self._check(step, outcome)
            if step < stop:  # Asked to end; the next start makes the report.
                self._end_before_report(step, outcome, request)
            self._report(step, outcome)
            if self._ends_at(step, request):
                return {}
            self._reporter.restart_clock()
        self._state.wait()
        if self._is_chief:
            plot_curves(
                os.path.join(self._run_dir, METRICS_FILE),
                os.path.join(self._run_dir, "curves.png"),
            )
        if self._evaluator and not self._evaluated:  # The run was complete before.
            self._evaluated = self._evaluator()
        return self._evaluated

    def _next_stop(self, step: int) -> int:
        """The settings' next stop, or the beginning of the decay."""
        stop = self._settings.next_stop(step)
        if self._decay_start is None or step >= self._decay_start:
            return stop
        return min(stop, self._decay_start)

    def _totals_before(self, step: int) -> dict[str, Ratio]:
        """The sums of the updates since the last report, where the last start was stopped then."""
        none, found = self._stepper.no_totals(), partial_report.read(self._run_dir, step)
        return found if found and found.keys() == none.keys() else none

    def _end_before_report(self, step: int, outcome: Outcome, request: StopRequest) -> NoReturn:
        """Saves, with the sums for the report that is due next; raises Preempted."""
        if self._is_sound(step):
            if self._is_chief:
                partial_report.write(self._run_dir, step, outcome.totals)
            self._save(step)
        self._state.wait()
        raise Preempted(step, self._last_saved, request.number)

    def _ends_at(self, step: int, request: StopRequest) -> bool:
        """Evaluates and saves what is due; whether `train` ends here, before the decay.

        Raises:
          Preempted: see `train`.
        """
        settings, is_sound = self._settings, self._is_sound(step)
        if is_sound and settings.is_due(step, settings.eval_steps):
            self._evaluate(step)
        # After the evaluation, so that a run interrupted in between makes it again.
        is_preempted = request.arrived(self._stepper.strategy)
        is_over = is_sound and not is_preempted and self._is_over(step)
        # After a step that was left out the save stays due, until the next sound stop.
        self._is_save_due |= settings.is_due(step, settings.checkpoint_steps)
        self._is_save_due |= is_preempted or is_over or step == self._decay_start
        if self._is_save_due and is_sound:
            self._save(step)
        if is_preempted and step < settings.num_train_steps:
            self._state.wait()
            raise Preempted(step, self._last_saved, request.number)
        if is_over:
            self._choose_ending(step)
        return is_over

    def _save(self, step: int) -> None:
        """Begins to write a checkpoint; metrics.csv up to its step has to be safe before."""
        self._reporter.sync()
        if self._deadline:
            self._deadline.record()
        self._state.save()
        self._last_saved, self._is_save_due = step, False

    def _is_over(self, step: int) -> bool:
        """Whether the decay has to begin now for the run to end in time."""
        decay_start = self._decay_start
        if decay_start is None:
            decay_start = self._settings.num_train_steps
        if not self._deadline or step >= decay_start:
            return False
        return self._deadline.is_reached(step)

    def _choose_ending(self, step: int) -> None:
        """Chooses the end of the run, once the checkpoint to which it goes back is safe."""
        assert self._deadline
        self._state.wait()
        ending = self._deadline.choose_ending(step, self._settings.num_train_steps)
        last = ending.num_train_steps
        self._reporter.note(
            f"--max_minutes: the rate falls from step {step} on, and the run ends with step {last} "
            f"({ENDING_FILE}); with --num_train_steps={last} --decay_share={ending.decay_share} "
            "any machine repeats it"
        )

    def _check(self, step: int, outcome: Outcome) -> None:
        """Counts the steps that were left out; raises UserError when they were too many."""
        num_bad = int(outcome.num_bad)
        self._last_good = int(outcome.last_good) or self._last_good
        if num_bad:
            self._num_bad += num_bad
            self._check_bad(int(outcome.first_bad), num_bad, step - self._last_good)

    def _report(self, step: int, outcome: Outcome) -> None:
        """Shows and stores the figures of the steps since the last report."""
        metrics = {name: float(value) for name, value in outcome.metrics.items()}
        details = None
        if self._is_chief and isinstance(self._stepper.optimizer, AdamFamily):
            details = self._stepper.describe_updates()
        self._reporter.train(step, metrics, details)
        if self._hooks.notice and (line := self._hooks.notice(step, metrics)):
            self._reporter.note(line)

    def _check_bad(self, first: int, count: int, in_a_row: int) -> None:
        """Prints that steps were left out; raises UserError when they were too many."""
        source = ""
        if self._hooks.describe_batch:
            source = f" (its batch comes from {self._hooks.describe_batch(first)})"
        found = f"loss or gradient is not finite at step {first}{source}"
        if self._num_bad > self._settings.max_bad_steps:
            raise self._broken(found, ", or let --max_bad_steps leave out such steps")
        if in_a_row >= MAX_BAD_IN_A_ROW:
            raise self._broken(
                f"{found}; {in_a_row} steps in a row were left out, and weights that are not "
                "updated do not heal"
            )
        self._reporter.note(f"{found}; {count} step(s) left out, {self._num_bad} so far")

    def _is_sound(self, step: int) -> bool:
        """Whether the weights of a step are worth a checkpoint, which older ones make room for.

        After a step that was left out they may be broken: only the next ones will tell. After the
        last step there is no next one, and the weights are those of the last good step.

        Raises:
          UserError: they are not finite.
        """
        if not self._state.is_finite():
            raise self._broken(f"weights or moments are not finite at step {step}")
        return step in (self._last_good, self._settings.num_train_steps)

    def _broken(self, found: str, remedy: str = "") -> Diverged:
        """The error for weights or gradients that are not finite; names the checkpoint to use."""
        self._state.wait()
        return Diverged(
            f"{found}; last good checkpoint: {self._state.latest}. Lower --learning_rate, or "
            f"lengthen the warm-up{remedy}."
        )

    def _evaluate(self, step: int) -> None:
        """Evaluates, where there is something to evaluate on, and tells everybody the figures."""
        if self._evaluator is None:
            return
        began, self._is_evaluating = time.monotonic(), True
        self._evaluated = self._evaluator()
        self._is_evaluating, self._seconds["evaluation"] = False, time.monotonic() - began
        self._reporter.evaluation(step, self._evaluated)
        if self._is_chief and self._hooks.examples:
            self._reporter.examples(step, self._hooks.examples())
        if self._is_chief and self._hooks.on_evaluation:
            self._hooks.on_evaluation(step, self._evaluated)

    def close(self) -> None:
        """Returns when all reports and checkpoints are written."""
        self._reporter.close()
        self._state.close()
