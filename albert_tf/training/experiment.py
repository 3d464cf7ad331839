"""Training runs of any task: folder, start-up card, loop, best model, last model, next command.

A program, or a notebook, describes the run by dataclasses and calls `run`:

    Experiment      a task with its data, evaluation and results
      RunSettings   the folder, the optimizer, the loop
      TrainingData  batches, their sizes and their origin
      ModelFolders  which models are kept
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.tasks import Task
from albert_tf.training import run_folder
from albert_tf.training.best_model import BestModel
from albert_tf.training.checkpoint_files import check_steps
from albert_tf.training.deadline import Deadline, Ending
from albert_tf.training.evaluation import HeldOutScores
from albert_tf.training.initial_model import check_data_fit
from albert_tf.training.loop import Hooks, train
from albert_tf.training.memory import check_training_memory
from albert_tf.training.optimizers import guard_updates, make_optimizer
from albert_tf.training.report.cards import print_start
from albert_tf.training.report.machine import step_cost
from albert_tf.training.settings import RunSettings
from albert_tf.training.steps import Stepper, check_batch_size
from albert_tf.training.strategy import is_chief, wait_for_all


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingData:
    """The examples that a run is trained on.

    Attributes:
      name: for messages, a folder or file.
      batches: called with `start_step=`, and with `input_context=` where several hosts read;
        endless global batches from that step on.
      batch_size: B, examples of a global batch.
      seed: of the order of the examples, and of dropout.
      num_examples: None where nobody has counted them.
      max_seq_length: S.
      vocab_size: V.
      must_not_change: other settings that decide the batches, by name; a run is continued only
        with the same.
      tokens_per_example: those that are no padding, in the mean, for the speed in reports; None: S.
      describe_batch: from a step (1-based) to the file and place that its batch comes from; None:
        nobody knows.
      explain: from an error that TensorFlow raised in training to the one to raise for it.
    """

    name: str
    batches: Callable[..., tf.data.Dataset]
    batch_size: int
    seed: int
    num_examples: int | None
    max_seq_length: int
    vocab_size: int
    must_not_change: Mapping[str, Any]
    tokens_per_example: float | None = None
    describe_batch: Callable[[int], str] | None = None
    explain: Callable[[tf.errors.OpError], Exception] = lambda error: error


@dataclasses.dataclass(frozen=True)
class ModelFolders:
    """The model folders that a run keeps, see `native.save`.

    Attributes:
      best: name, in the folder of the run, of the best model's folder.
      last: name of the last model's folder; None: it is not kept.
      metric: name of the held-out figure that decides which is best.
      higher_is_better: whether the largest figure is the best.
      metadata: entries of model.json beside the task's.
      vocab_file: path of their vocabulary.
      tokenizer: the content of tokenizer_settings.json.
      result: name of the folder that the run is made for; None: the last model's, if it is kept.
    """

    best: str
    last: str | None
    metric: str
    higher_is_better: bool
    metadata: Mapping[str, Any]
    vocab_file: str
    tokenizer: dict[str, Any]
    result: str | None = None


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A training run.

    Attributes:
      title: of the start-up card.
      task: the model, its losses and metrics. The run computes on the devices of the strategy in
        whose scope the model was made.
      model_to_keep: the part of the task's model that the run is made for; None: all of it.
      data: the examples that it is trained on.
      settings: folder, optimizer and loop.
      models: the model folders that are kept.
      flops_per_token: floating point operations of a training step, forward and backward.
      evaluator: computes the held-out figures, as an Evaluator does; None: there are none.
      card: further figures of the start-up card, by name.
      examples: returns predictions on held-out data as Markdown, for TensorBoard.
      notice: see `loop.Hooks`.
      print_results: prints the held-out figures, which it is called with at the end.
      next_commands: called at the end for the command lines that use the result, to be printed.
    """

    title: str
    task: Task
    data: TrainingData
    settings: RunSettings
    models: ModelFolders
    flops_per_token: float
    model_to_keep: keras.Model | None = None
    evaluator: HeldOutScores | None = None
    card: Mapping[str, str] = dataclasses.field(default_factory=dict)
    examples: Callable[[], str] | None = None
    notice: Callable[[int, dict[str, float]], str | None] | None = None
    print_results: Callable[[dict[str, float]], None] | None = None
    next_commands: Callable[[], Sequence[str]] = lambda: ()

    @property
    def kept(self) -> keras.Model:
        """The model that is saved."""
        return self.task.model if self.model_to_keep is None else self.model_to_keep

    def path(self, name: str) -> str:
        """Path of a file or folder in the folder of the run."""
        return os.path.join(self.settings.output_dir, name)


def run(experiment: Experiment, conclude: Callable[[], None] = lambda: None) -> dict[str, float]:
    """Trains to the end, from the start or from the newest checkpoint, and keeps the models.

    Args:
      experiment: the run.
      conclude: called at the end, while no other process may begin a run in the folder.

    Returns:
      The held-out figures at the end; empty without an evaluator.

    Raises:
      UserError: data, model, batch, settings or folder do not go together; nothing is written then.
      UserError, Preempted: see `loop.train`.
    """
    data, settings = experiment.data, experiment.settings
    check_data_fit(experiment.task.model.config, data.vocab_size, data.max_seq_length, data.name)
    deadline = None if settings.overwrite else settings.deadline()
    if deadline and deadline.ending:
        _check_limit(settings, deadline.ending)
        experiment = _ended_by(experiment, deadline.ending)
    stepper = make_stepper(experiment)
    if not settings.overwrite:
        check_steps(settings.output_dir, experiment.settings.loop.num_train_steps)
    with _start(experiment):
        experiment, metrics = _train_in_time(experiment, stepper)
        if is_chief(stepper.strategy):
            _finish(experiment, metrics)
        conclude()
    return metrics


def _check_limit(settings: RunSettings, ending: Ending) -> None:
    """Raises UserError where the deadline chose an end beyond the limit that is given now."""
    limit = settings.loop.num_train_steps
    if limit < ending.num_train_steps:
        raise UserError(
            f"--num_train_steps={limit}: the minutes of this run have fixed its end at step "
            f"{ending.num_train_steps}. Give as many or more, or --overwrite to begin anew."
        )


def _ended_by(experiment: Experiment, ending: Ending) -> Experiment:
    """The experiment with an end that is chosen."""
    return dataclasses.replace(experiment, settings=experiment.settings.ended_by(ending))


def _train_in_time(experiment: Experiment, stepper: Stepper) -> tuple[Experiment, dict[str, float]]:
    """The loop, up to the deadline if there is one, and from there to the end that it chose.

    Returns:
      The experiment as it ended, and the held-out figures at its end.
    """
    deadline = experiment.settings.deadline()
    if not deadline or deadline.ending:
        return experiment, _train(experiment, stepper)
    metrics = _train(experiment, stepper, deadline)
    if not deadline.ending:  # All updates fit into the minutes.
        return experiment, metrics
    experiment = _ended_by(experiment, deadline.ending)
    return experiment, _train(experiment, make_stepper(experiment))


def make_stepper(experiment: Experiment) -> Stepper:
    """The training steps of a run, with an optimizer of their own.

    Raises:
      UserError: see `_check`; or the optimizer's settings do not go together.
    """
    _check(experiment)
    model, settings = experiment.task.model, experiment.settings
    strategy, num_parts = model.distribute_strategy, settings.gradient_accumulation_steps
    with strategy.scope():
        optimizer = make_optimizer(settings.optimizer, model.config, settings.loop.num_train_steps)
        optimizer = guard_updates(
            optimizer, strategy, model.dtype_policy.name, settings.loop.max_bad_steps
        )
    seed = experiment.data.seed
    return Stepper(experiment.task, optimizer, strategy, seed, num_parts, settings.jit_compile)


def _check(experiment: Experiment) -> None:
    """Raises UserError where model, data, settings and machine do not go together: the batch holds
    an example twice, cannot be divided or needs more memory than there is; or nothing can be
    trained.
    """
    model, data, settings = experiment.task.model, experiment.data, experiment.settings
    strategy, num_parts = model.distribute_strategy, settings.gradient_accumulation_steps
    if settings.loop.max_minutes and isinstance(
        strategy, tf.distribute.MultiWorkerMirroredStrategy
    ):
        raise UserError(
            f"--max_minutes={settings.loop.max_minutes:g} goes by the clock of one machine, and "
            "there are several workers. Give the number of updates, --num_train_steps."
        )
    if not model.trainable_variables:
        raise UserError("the model has no trainable variable: all of its parts are frozen.")
    if settings.jit_compile and model.encoder.packed:
        raise UserError(
            "--packed=true does not go with --jit_compile, whose shapes are known beforehand. Make "
            "the model with packed=False."
        )
    if data.num_examples is not None and data.batch_size > data.num_examples:
        raise UserError(
            f"--train_batch_size={data.batch_size} is more than the {data.num_examples} examples "
            f"of {data.name}: an update would see some of them twice. Use at most "
            f"{data.num_examples}."
        )
    check_batch_size(data.batch_size, strategy.num_replicas_in_sync, num_parts)
    check_training_memory(model.config, data.batch_size, num_parts, data.max_seq_length, strategy)


def _start(experiment: Experiment) -> contextlib.AbstractContextManager[Any]:
    """Makes the folder and prints the card, on the chief; returns the lock of the folder."""
    model, data, settings = experiment.task.model, experiment.data, experiment.settings
    strategy = model.distribute_strategy
    lock: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if is_chief(strategy):
        batches = {"seed": data.seed, "train_batch_size": data.batch_size}
        lock = run_folder.claim(
            settings.output_dir,
            model.config,
            {**settings.as_flags(), "precision": model.dtype_policy.name},
            {**batches, **data.must_not_change},
            settings.overwrite,
            settings.loop.allow_changes,
        )
        parts = settings.gradient_accumulation_steps
        figures = experiment.card
        print_start(experiment.title, model, data.batch_size, data.max_seq_length, figures, parts)
    wait_for_all(strategy)
    return lock


def _train(
    experiment: Experiment, stepper: Stepper, deadline: Deadline | None = None
) -> dict[str, float]:
    """The loop, with the best model kept; returns the held-out figures at the end."""
    data, settings, models = experiment.data, experiment.settings, experiment.models
    best = BestModel(
        experiment.kept,
        experiment.path(models.best),
        metric=models.metric,
        higher_is_better=models.higher_is_better,
        metadata=dict(models.metadata),
        vocab_file=models.vocab_file,
        tokenizer=models.tokenizer,
    )
    tokens = data.batch_size * (data.tokens_per_example or data.max_seq_length)
    dtype = experiment.task.model.compute_dtype
    cost = step_cost(tokens, experiment.flops_per_token, dtype, stepper.strategy)
    hooks = Hooks(
        on_evaluation=best.save_if_best,
        examples=experiment.examples,
        describe_batch=data.describe_batch,
        notice=experiment.notice,
    )
    try:
        return train(
            stepper,
            data.batches,
            experiment.evaluator,
            settings.loop,
            settings.output_dir,
            cost,
            hooks,
            settings.optimizer.decay_start(settings.loop.num_train_steps),
            deadline,
        )
    except tf.errors.OpError as error:
        raise data.explain(error) from None


def _finish(experiment: Experiment, metrics: dict[str, float]) -> None:
    """Saves the last model; prints the figures, the path of the result, and the next commands."""
    models = experiment.models
    if models.last:
        num_train_steps = experiment.settings.loop.num_train_steps
        native.save(
            experiment.kept,
            experiment.path(models.last),
            {**models.metadata, "num_train_steps": num_train_steps, "metrics": metrics},
            models.vocab_file,
            models.tokenizer,
        )
    if metrics and experiment.print_results:
        experiment.print_results(metrics)
    # There is no best model where no checkpoint had a score.
    folders = [experiment.path(name) for name in (models.result, models.last, models.best) if name]
    print(f"Model: {next((each for each in folders if tf.io.gfile.exists(each)), folders[0])}")
    for number, command in enumerate(experiment.next_commands()):
        print(f"{'  or' if number else 'Next'}: {command}")
