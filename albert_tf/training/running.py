"""`run_experiment`: a training run, from its folder and the start-up card to the last model."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.training import run_folder
from albert_tf.training.best_model import BestModel
from albert_tf.training.checkpoint_files import check_steps
from albert_tf.training.experiment import Experiment, check
from albert_tf.training.hooks.base import Callbacks
from albert_tf.training.hooks.deadline import Deadline, with_chosen_end
from albert_tf.training.initial_model import check_data_fit
from albert_tf.training.loop import train
from albert_tf.training.optimizers import guard_updates, make_optimizer
from albert_tf.training.report.cards import print_start
from albert_tf.training.report.machine import step_cost
from albert_tf.training.steps import Stepper
from albert_tf.training.strategy import is_chief, wait_for_all


def run_experiment(
    experiment: Experiment, conclude: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """Trains to the end, from the start or from the newest checkpoint, and keeps the models.

    Args:
      experiment: the run.
      conclude: called at the end, while the folder is still locked.

    Returns:
      The held-out figures at the end; empty without an evaluator.

    Raises:
      UserError: data, model, batch, settings or folder do not go together; nothing is written then.
      UserError, Preempted: see `train`.
    """
    data, settings = experiment.data, experiment.settings
    # An id beyond the model's table fails in the middle of a step on a CPU, and silently reads
    # zeros on a GPU.
    check_data_fit(
        experiment.objective.model.config, data.vocab_size, data.max_seq_length, data.name
    )
    # With --overwrite, the existing run, with its chosen end and its steps, will be deleted.
    if not settings.overwrite:
        experiment = _with_chosen_end(experiment)
        check_steps(settings.output_dir, experiment.settings.loop.num_train_steps)
    # The folder is made after all checks, so that a mistake in flags leaves no folder behind.
    stepper = make_stepper(experiment)
    with _start(experiment):
        try:
            metrics = train(stepper, **_arguments(experiment))
            if (whole := _with_chosen_end(experiment)).settings != experiment.settings:
                # --max_minutes has ended the loop where the decay begins. The schedule is a
                # constant of the compiled step, so the decay needs its own stepper, which resumes
                # from the checkpoint like any start.
                experiment, stepper = whole, make_stepper(whole)
                metrics = train(stepper, **_arguments(experiment))
        except tf.errors.OpError as error:
            raise data.explain(error) from None  # TensorFlow's error names nodes, not files.
        if is_chief(stepper.strategy):
            with stepper.averaged():
                _finish(experiment, metrics)
        conclude()  # Still locked, so that files about the run are of this start.
    return metrics


def _with_chosen_end(experiment: Experiment) -> Experiment:
    return dataclasses.replace(experiment, settings=with_chosen_end(experiment.settings))


def make_stepper(experiment: Experiment) -> Stepper:
    """The training steps of a run, with a new optimizer; a UserError if model, data, settings and
    machine do not go together.
    """
    check(experiment)
    model, settings = experiment.objective.model, experiment.settings
    strategy, num_parts = model.distribute_strategy, settings.gradient_accumulation_steps
    # In the model's scope: TensorFlow refuses moments on other devices than their weights.
    with strategy.scope():
        optimizer = make_optimizer(settings.optimizer, model.config, settings.loop.num_train_steps)
        optimizer = guard_updates(
            optimizer, strategy, model.dtype_policy.name, settings.loop.max_bad_steps
        )
    seed = experiment.data.seed
    return Stepper(experiment.objective, optimizer, strategy, seed, num_parts, settings.jit_compile)


def _start(experiment: Experiment) -> contextlib.AbstractContextManager[Any]:
    """Makes the folder and prints the card, on the chief; returns the lock of the folder."""
    model, data, settings = experiment.objective.model, experiment.data, experiment.settings
    strategy = model.distribute_strategy
    lock: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if is_chief(strategy):
        # Another seed or size makes other batches, so the run could not continue where it was.
        size = data.batch_size if data.sizes.is_constant else str(data.sizes)
        batches = {"seed": data.seed, "train_batch_size": size}
        lock = run_folder.claim(
            settings.output_dir,
            model.config,
            # A model made in Python may have another precision than the one that is set globally.
            {**settings.as_flags(), "precision": model.dtype_policy.name},
            {**batches, **data.must_not_change},
            settings.overwrite,
            settings.loop.allow_changes,
        )
        parts = settings.gradient_accumulation_steps
        figures = experiment.card
        print_start(experiment.title, model, data.batch_size, data.max_seq_length, figures, parts)
    # Other workers read the folder's checkpoints, which --overwrite may be deleting right now.
    wait_for_all(strategy)
    return lock


def _arguments(experiment: Experiment) -> dict[str, Any]:
    """The arguments of `train` except the stepper. Evaluations save the best model."""
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
    # Tokens without padding, if their number is known: reports show the speed of useful work.
    model, flops = experiment.objective.model, experiment.flops_per_token
    tokens = data.batch_size * (data.tokens_per_example or data.max_seq_length)
    cost = step_cost(tokens, flops, model.compute_dtype, model.distribute_strategy)
    return dict(
        training_data=data.batches,
        evaluator=experiment.evaluator,
        settings=settings.loop,
        run_dir=settings.output_dir,
        cost=dataclasses.replace(
            cost, whole_steps=lambda step: data.sizes.before(step) / data.batch_size
        ),
        callbacks=Callbacks(
            on_evaluation=best.save_if_best,
            examples=experiment.examples,
            describe_batch=data.describe_batch,
            notice=experiment.notice,
        ),
        decay_start=settings.optimizer.decay_start(settings.loop.num_train_steps),
        # Once the end is chosen, `with_chosen_end` has taken the minutes out of the settings.
        deadline=Deadline(settings) if settings.loop.max_minutes else None,
        data_changes=data.sizes.steps[1:],
    )


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
    # There is no best model if no checkpoint had a score.
    folders = [experiment.path(name) for name in (models.result, models.last, models.best) if name]
    print(f"Model: {next((each for each in folders if tf.io.gfile.exists(each)), folders[0])}")
    for number, command in enumerate(experiment.next_commands()):
        print(f"{'  or' if number else 'Next'}: {command}")
