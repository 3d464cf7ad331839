"""Held-out evaluation in run_pretraining: in training, of a finished run, of a run elsewhere."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from albert_tf import flags as shared_flags
from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.models import AlbertPretrainer
from albert_tf.pretraining.examples import masked_lm_examples
from albert_tf.tasks import PretrainingTask
from albert_tf.training import Evaluator, run_folder
from albert_tf.training.devices import is_packed
from albert_tf.training.evaluation import evaluate_checkpoints
from albert_tf.training.report.cards import print_comparison
from data_pipeline.command_line import flags
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.pretraining.statistics import pretraining_baselines
from data_pipeline.records.record_folder import read_manifest
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS


def eval_folders() -> list[str]:
    """The folders of --eval_data."""
    if not FLAGS.eval_data:
        raise UserError(
            "--eval_data is missing: folders of records that create_pretraining_data wrote."
        )
    return FLAGS.eval_data


def make_evaluator(
    model: AlbertPretrainer, strategy: tf.distribute.Strategy, vocab_fingerprint: str
) -> Evaluator:
    """Evaluates on all of --eval_data, each with the objective that it was made for."""
    parts, objectives = [], []
    for folder in eval_folders():
        manifest = read_manifest(folder)
        objective = manifest["settings"]["sentence_objective"]
        if objective in objectives:
            raise UserError(
                f"--eval_data={','.join(FLAGS.eval_data)} has two folders with the sentence "
                f"objective {objective!r}. Name one for each objective."
            )
        objectives.append(objective)
        batch_size = shared_flags.evaluation_batch(
            model.config, manifest["max_seq_length"], manifest["num_records"], strategy
        )
        data = functools.partial(
            pretraining_dataset,
            folder,
            batch_size,
            training=False,
            vocab_fingerprint=vocab_fingerprint,
        )
        parts.append((PretrainingTask(model, objective), data))
    return Evaluator(parts, strategy)


def evaluate(strategy: tf.distribute.Strategy) -> None:
    """Evaluates the model of a finished run, or of --init_checkpoint."""
    eval_folders()
    folder = FLAGS.init_checkpoint or os.path.join(FLAGS.output_dir, "model")
    metadata = native.read_metadata(folder)
    with strategy.scope():
        model = native.load_model(folder, is_packed())
    if not isinstance(model, AlbertPretrainer):
        raise UserError(f"{folder} holds a model for {metadata['task']}, not for pretraining.")
    print_results(make_evaluator(model, strategy, metadata["vocab_fingerprint"])())


def evaluate_run(strategy: tf.distribute.Strategy, num_train_steps: int) -> None:
    """Evaluates the checkpoints of a run in --output_dir as they appear, up to its last step."""
    eval_folders()
    config, fixed = run_folder.read(FLAGS.output_dir)
    with strategy.scope():
        model = AlbertPretrainer(config, is_packed())
    evaluator = make_evaluator(model, strategy, fixed["vocab_fingerprint"])
    metrics = evaluate_checkpoints(
        model, evaluator, FLAGS.output_dir, num_train_steps, FLAGS.eval_timeout
    )
    if not metrics:
        raise UserError(
            f"no checkpoint appeared in --output_dir={FLAGS.output_dir} within "
            f"--eval_timeout={FLAGS.eval_timeout} seconds."
        )
    print_results(metrics)


def print_results(metrics: dict[str, float]) -> None:
    """The held-out figures beside what a guess without a model would reach."""
    for number, folder in enumerate(FLAGS.eval_data):
        manifest = read_manifest(folder)
        train_manifest = read_manifest(FLAGS.train_data) if FLAGS.train_data else manifest
        baselines = pretraining_baselines(train_manifest, manifest)
        names = PretrainingTask(None, manifest["settings"]["sentence_objective"]).metrics
        if number:  # The figures of the words are those of the first folder.
            names = [name for name in names if not name.startswith("masked_lm")]
        rows = {name: (metrics[name], *baselines[name]) for name in names}
        fitted = "" if FLAGS.train_data else ", baselines of these records"
        print_comparison(f"Held-out evaluation on {folder}{fitted}", rows)


def example_writer(model: AlbertPretrainer, manifest: dict[str, Any]) -> Callable[[], str] | None:
    """Predictions on the first held-out texts as a function without arguments; None: no texts.

    Args:
      manifest: of the training records, whose vocabulary the model has.
    """
    if not FLAGS.eval_data:
        return None
    vocab_file = os.path.join(manifest["directory"], manifest["vocab_file"])
    tokenizer = load_tokenizer(vocab_file, **manifest["tokenizer"])
    batch_size = min(FLAGS.eval_batch_size, read_manifest(FLAGS.eval_data[0])["num_records"])
    data = pretraining_dataset(FLAGS.eval_data[0], batch_size, training=False)

    def pieces(ids: list[int]) -> list[str]:
        return [tokenizer.pieces[i] for i in ids]

    return lambda: masked_lm_examples(model, next(iter(data)), pieces)
