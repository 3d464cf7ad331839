"""`run_experiment`: a training run, from its folder and the start-up card to the last model.

1. `make_stepper`: is all of it possible? Then the optimizer and the training steps.
2. `_start` claims the folder and prints the card.
3. `_train`: the loop with its hooks (training.py); the best model is kept.
4. `_finish`: the last model, the figures, the next commands.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.training import run_folder
from albert_tf.training.best_model import BestModel
from albert_tf.training.checkpoint_files import check_steps
from albert_tf.training.experiment import Experiment
from albert_tf.training.hooks.deadline import Deadline, open_deadline, with_chosen_end
from albert_tf.training.initial_model import check_data_fit
from albert_tf.training.loop import Callbacks
from albert_tf.training.memory import check_training_memory
from albert_tf.training.optimizers import guard_updates, make_optimizer
from albert_tf.training.report.cards import print_start
from albert_tf.training.report.machine import step_cost
from albert_tf.training.steps import Stepper, check_batch_size
from albert_tf.training.strategy import is_chief, wait_for_all
from albert_tf.training.training import train


def run_experiment(
    experiment: Experiment, conclude: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """Trains to the end, from the start or from the newest checkpoint, and keeps the models.

    Args:
      experiment: the run.
      conclude: called at the end, while no other process may begin a run in the folder.

    Returns:
      The held-out figures at the end; empty without an evaluator.

    Raises:
      UserError: data, model, batch, settings or folder do not go together; nothing is written then.
      UserError, Preempted: see `train`.
    """
    data, settings = experiment.data, experiment.settings
    check_data_fit(
        experiment.objective.model.config, data.vocab_size, data.max_seq_length, data.name
    )
    if not settings.overwrite:
        experiment = _with_chosen_end(experiment)
        check_steps(settings.output_dir, experiment.settings.loop.num_train_steps)
    stepper = make_stepper(experiment)
    with _start(experiment):
        deadline = open_deadline(experiment.settings)
        metrics = _train(experiment, stepper, deadline)
        if deadline and deadline.ending:  # What is left is a run of so many steps.
            experiment = _with_chosen_end(experiment)
            metrics = _train(experiment, make_stepper(experiment))
        if is_chief(stepper.strategy):
            _finish(experiment, metrics)
        conclude()
    return metrics


def _with_chosen_end(experiment: Experiment) -> Experiment:
    """The experiment, with the end that --max_minutes has chosen, where it has."""
    return dataclasses.replace(experiment, settings=with_chosen_end(experiment.settings))


def make_stepper(experiment: Experiment) -> Stepper:
    """The training steps of a run, with an optimizer of their own.

    Raises:
      UserError: see `_check`; or the optimizer's settings do not go together.
    """
    _check(experiment)
    model, settings = experiment.objective.model, experiment.settings
    strategy, num_parts = model.distribute_strategy, settings.gradient_accumulation_steps
    with strategy.scope():
        optimizer = make_optimizer(settings.optimizer, model.config, settings.loop.num_train_steps)
        optimizer = guard_updates(
            optimizer, strategy, model.dtype_policy.name, settings.loop.max_bad_steps
        )
    seed = experiment.data.seed
    return Stepper(experiment.objective, optimizer, strategy, seed, num_parts, settings.jit_compile)


def _check(experiment: Experiment) -> None:
    """Raises UserError where model, data, settings and machine do not go together: the batch holds
    an example twice, cannot be divided or needs more memory than there is; or nothing can be
    trained.
    """
    model, data, settings = experiment.objective.model, experiment.data, experiment.settings
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
    model, data, settings = experiment.objective.model, experiment.data, experiment.settings
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
    dtype = experiment.objective.model.compute_dtype
    cost = step_cost(tokens, experiment.flops_per_token, dtype, stepper.strategy)
    callbacks = Callbacks(
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
            callbacks,
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
