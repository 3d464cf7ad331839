r"""Fine-tunes an ALBERT to classify sentences or sentence pairs, evaluates it, predicts with it.

    python -m albert_tf.run_classifier --init_checkpoint=runs/base/model \
        --train_file=train.tsv --dev_file=dev.tsv --output_dir=runs/mytask
    python -m albert_tf.run_classifier --mode=predict --output_dir=runs/mytask \
        --predict_file=new.tsv

A TSV file has a header; by default its columns are `text` and `label`.
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import contextlib
import dataclasses
import functools

import tensorflow as tf

from albert_tf import flags as shared_flags
from albert_tf.checkpoints import formats
from albert_tf.costs import encoder_flops_per_token
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertClassifier
from albert_tf.optimization import Recipe
from albert_tf.pretrained import locate
from albert_tf.run_classifier_eval import model_dir, predict, read_examples, report
from albert_tf.tasks import ClassificationTask
from albert_tf.training import BestModel, Evaluator, Hooks, run_folder, train
from albert_tf.training.checkpoint_files import check_steps
from albert_tf.training.devices import is_packed, prepare_devices
from albert_tf.training.report.cards import print_classification_start
from albert_tf.training.report.machine import step_cost
from albert_tf.training.strategy import is_chief, wait_for_all
from albert_tf.training.supervision import run_supervised
from data_pipeline.finetuning.classification import (
    classification_dataset,
    encode_classification,
    label_names,
)
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    shared_flags.define_run_flags(modes=("train_and_eval", "eval", "predict"))
    shared_flags.define_model_flags()
    shared_flags.define_training_flags(optimizer="adamw", learning_rate=2e-5, train_batch_size=32)
    shared_flags.define_device_flags()
    flags.group("Data and length of training")
    flags.DEFINE_string("train_file", None, "TSV to train on.")
    flags.DEFINE_string("dev_file", None, "TSV to evaluate on, and to choose the best model by.")
    flags.DEFINE_string("predict_file", None, "TSV to predict; see predictions.tsv in output_dir.")
    flags.DEFINE_string("text_column", "text", "Column of the (first) sentence.")
    flags.DEFINE_string("pair_column", None, "Column of the second sentence, for pairs.")
    flags.DEFINE_string("label_column", "label", "Column of the label.")
    flags.DEFINE_string(
        "vocab_file", None, "Vocabulary (spiece.model, vocab.txt); a model folder has one."
    )
    flags.DEFINE_integer("max_seq_length", 128, "Longer texts are cut.", 5, 65536)
    flags.DEFINE_float("num_train_epochs", 3.0, "Passes over train_file.", 0.001, 10_000)
    flags.DEFINE_float("warmup_proportion", 0.1, "Share of updates in which the rate rises.", 0, 1)
    flags.DEFINE_float("classifier_dropout", 0.1, "Dropout before the output layer.", 0, 0.99)


def main() -> None:
    strategy = prepare_devices()
    if FLAGS.mode == "train_and_eval":
        train_and_evaluate(strategy)
    elif FLAGS.mode == "eval":
        report(strategy, read_examples("dev_file"))
    else:
        predict(strategy)


def train_and_evaluate(strategy: tf.distribute.Strategy) -> None:
    """Trains; the model with the best dev accuracy is kept."""
    training, dev = read_examples("train_file"), read_examples("dev_file")
    labels = label_names(training)
    vocab_file = shared_flags.vocabulary_file()
    tokenizer = load_tokenizer(vocab_file)
    config = shared_flags.model_config(tokenizer.vocab_size, FLAGS.max_seq_length, vocab_file)
    shared_flags.check_train_batch(
        config, FLAGS.max_seq_length, len(training), FLAGS.train_file, strategy
    )
    arrays = encode_classification(training, tokenizer, FLAGS.max_seq_length, labels)
    dev_arrays = encode_classification(dev, tokenizer, FLAGS.max_seq_length, labels)

    num_steps = max(1, int(len(training) * FLAGS.num_train_epochs / FLAGS.train_batch_size))
    if not FLAGS.overwrite:
        check_steps(FLAGS.output_dir, num_steps)
    keras.utils.set_random_seed(FLAGS.seed)
    with strategy.scope():
        packed = is_packed()
        model = AlbertClassifier(config, len(labels), FLAGS.classifier_dropout, packed)
        if FLAGS.init_checkpoint:
            formats.load_encoder(model, locate(FLAGS.init_checkpoint).path)
        recipe = Recipe(FLAGS.learning_rate, num_steps, int(num_steps * FLAGS.warmup_proportion))
        optimizer = shared_flags.make_optimizer(config, recipe)
    task = ClassificationTask(model)
    stepper = shared_flags.make_stepper(task, optimizer, strategy)
    lock = contextlib.nullcontext()
    if is_chief(strategy):
        fixed = {
            "seed": FLAGS.seed,
            "train_batch_size": FLAGS.train_batch_size,
            "num_examples": len(training),
            "labels": labels,
            "vocab_fingerprint": tokenizer.fingerprint,
            "examples": run_folder.fingerprint(arrays),
        }
        changes = FLAGS.overwrite, FLAGS.allow_changes
        lock = run_folder.prepare(FLAGS.output_dir, config, flags.resolved(), fixed, *changes)
        print_classification_start(
            model, strategy, len(training), FLAGS.max_seq_length, FLAGS.train_batch_size, num_steps
        )
    wait_for_all(strategy)

    training_data = functools.partial(
        classification_dataset, arrays, FLAGS.train_batch_size, seed=FLAGS.seed
    )
    eval_batch = shared_flags.evaluation_batch(config, FLAGS.max_seq_length, len(dev), strategy)
    dev_data = functools.partial(classification_dataset, dev_arrays, eval_batch, training=False)
    metadata = {
        "labels": labels,
        "max_seq_length": FLAGS.max_seq_length,
        "vocab_fingerprint": tokenizer.fingerprint,
    }
    text_settings = dataclasses.asdict(tokenizer.settings)
    best = BestModel(model, model_dir(), "accuracy", True, metadata, vocab_file, text_settings)
    settings = shared_flags.loop_settings(num_steps)
    evaluator = Evaluator([(task, dev_data)], strategy)
    flops = 3 * encoder_flops_per_token(config, FLAGS.max_seq_length)
    cost = step_cost(FLAGS.train_batch_size * FLAGS.max_seq_length, flops, strategy)
    hooks = Hooks(on_evaluation=best.offer)
    with lock:
        train(stepper, training_data, evaluator, settings, FLAGS.output_dir, cost, hooks)
    if not is_chief(strategy):
        return
    report(strategy, dev)
    print(f"Model: {model_dir()}\nNext: python -m export.run_export --model_dir={model_dir()} "
          "--task=classifier --output_dir=...")  # fmt: skip


if __name__ == "__main__":
    define_flags()
    run_binary(
        lambda: run_supervised(main, FLAGS.max_failures, FLAGS.output_dir), user_errors=[UserError]
    )
