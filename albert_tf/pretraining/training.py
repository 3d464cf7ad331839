"""Pre-training of a model: the experiment that run_pretraining runs."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Sequence
from typing import Any

from albert_tf.checkpoints import native
from albert_tf.distillation.teacher import Distillation, Shared, with_teacher
from albert_tf.pretraining.data import PretrainingData, tell_of_other_draws
from albert_tf.pretraining.evaluation import HeldOut
from albert_tf.pretraining.examples import example_writer
from albert_tf.pretraining.objectives import MaskedWords, Pretrainer, RecurringSpans, objective_of
from albert_tf.pretraining.plateau import watch_of
from albert_tf.training.experiment import Experiment, ModelFolders
from albert_tf.training.running import run_experiment
from albert_tf.training.settings import RunSettings
from albert_tf.training.strategy import is_chief


def pretrain(
    model: Pretrainer,
    data: PretrainingData,
    settings: RunSettings,
    eval_data: Sequence[str] = (),
    distillation: Distillation | None = None,
) -> dict[str, float]:
    """Trains a model; saves it at the end, and at the lowest held-out loss.

    Args:
      model: its class decides the objective. It is trained on the devices of the strategy in whose
        scope it was made. A resumed run takes its weights from the newest checkpoint.
      data: of `open_records` or `open_text`.
      settings: folder, optimizer and loop.
      eval_data: folders of held-out records, at most one for each sentence objective.
      distillation: a teacher, and what is learned from it besides the words or instead of them.

    Returns:
      The held-out figures at the end; empty without `eval_data`.

    Raises:
      UserError: see `run_experiment`.
    """
    held_out = HeldOut(eval_data, settings.eval_batch_size) if eval_data else None
    objective = objective_of(model)
    flops = objective.flops_per_token(data.max_seq_length, data.manifest["max_predictions"])
    shared = Shared(data.manifest["vocab_fingerprint"], data.vocab_size, data.max_seq_length)
    learned = with_teacher(objective.losses(data.sentence_objective), distillation, shared)
    fixed = {**data.must_not_change, **learned.must_not_change}
    data = dataclasses.replace(data, must_not_change=fixed)
    watch = watch_of(data)
    # One line for the whole run, so only the chief prints it, before the output of training.
    if is_chief(model.distribute_strategy) and not settings.overwrite:
        tell_of_other_draws(settings.output_dir, data)
    return run_experiment(
        Experiment(
            title="Pre-training",
            objective=learned.objective,
            model_to_keep=objective.kept,
            data=objective.data(data),
            settings=settings,
            models=_model_folders(data, held_out),
            flops_per_token=flops,
            card={**_card(objective, data, settings, flops), **learned.card},
            notice=watch.notice if watch else None,
            next_commands=functools.partial(
                _next_commands, objective, os.path.join(settings.output_dir, native.RUN_MODEL)
            ),
            **_evaluation(model, data, held_out),
        )
    )


def _evaluation(
    model: Pretrainer, data: PretrainingData, held_out: HeldOut | None
) -> dict[str, Any]:
    """The fields of an Experiment that concern its evaluation; none without held-out records."""
    if held_out is None:
        return {}
    train_manifest = data.manifest if data.has_statistics else None
    return {
        "evaluator": held_out.evaluator(model, data.manifest["vocab_fingerprint"]),
        "examples": example_writer(objective_of(model).words, data, held_out),
        "print_results": functools.partial(held_out.print_results, train_manifest=train_manifest),
    }


def _card(
    objective: MaskedWords, data: PretrainingData, settings: RunSettings, flops_per_token: float
) -> dict[str, str]:
    """The figures of pre-training on the start-up card, by name."""
    passes, sizes = "not counted (--train_text)", data.sizes
    if data.num_examples:
        num_seen = sizes.before(settings.loop.num_train_steps)
        passes = f"{num_seen / data.num_examples:.{1 if num_seen >= data.num_examples else 2}f}"
    first_loss, terms = objective.first_loss(data)
    tokens = {}
    if not sizes.is_constant:
        tokens["tokens per update"] = ", ".join(
            f"{size * data.max_seq_length:,} ({size} x {data.max_seq_length}) from step {step:,}"
            for size, step in zip(sizes.values, sizes.steps)
        )
    return {
        **tokens,
        "training operations": f"{flops_per_token / 1e6:,.1f} MFLOP a token",
        "passes over the data": passes,
        "expected first loss": f"{first_loss:.2f} ({terms})",
    }


def _next_commands(objective: MaskedWords, model_dir: str) -> list[str]:
    """Command lines that use the model."""
    has_spans = isinstance(objective, RecurringSpans)
    task, name, ending = ("squad1.1", "-v1.1", "json") if has_spans else ("tsv", "", "tsv")
    length = "--max_seq_length=384 " if has_spans else ""  # The default is too short.
    commands = [
        f"python -m albert_tf.run_finetuning --task={task} --init_checkpoint={model_dir} "
        f"--train_file=train{name}.{ending} --dev_file=dev{name}.{ending} {length}--output_dir=..."
    ]
    # A detector predicts no words, so it cannot be exported to fill masks.
    if objective.kept is objective.words:
        commands.append(
            f"python -m export.run_export --model_dir={model_dir} --task=masked_lm --output_dir=..."
        )
    return commands


def _model_folders(data: PretrainingData, held_out: HeldOut | None) -> ModelFolders:
    """The best model and the last one, as the run keeps them."""
    metadata = {name: data.manifest[name] for name in ("max_seq_length", "vocab_fingerprint")}
    if held_out:
        metadata["eval_data_sha256"] = held_out.sha256()
    return ModelFolders(
        best="best_model",
        last=native.RUN_MODEL,
        metric="loss",
        higher_is_better=False,
        metadata=metadata,
        vocab_file=data.vocab_file,
        tokenizer=data.manifest["tokenizer"],
    )
