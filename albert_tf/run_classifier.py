r"""Fine-tunes an ALBERT to classify sentences or sentence pairs, evaluates it, predicts with it.

    python -m albert_tf.run_classifier --init_checkpoint=runs/base/model \
        --train_file=train.tsv --dev_file=dev.tsv --output_dir=runs/mytask
    python -m albert_tf.run_classifier --mode=predict --output_dir=runs/mytask \
        --predict_file=new.tsv

A TSV file has a header; by default its columns are `text` and `label`.
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import os

from albert_tf import flags as shared_flags
from albert_tf.errors import UserError
from albert_tf.finetuning import classification
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertClassifier
from albert_tf.optimization import Recipe
from albert_tf.training.devices import Devices
from albert_tf.training.supervision import run_supervised
from data_pipeline.finetuning.classification import (
    Examples,
    label_names,
    read_tsv,
    write_predictions,
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
    devices = shared_flags.prepare_flagged_devices()
    model_dir = os.path.join(FLAGS.output_dir, "model")
    if FLAGS.mode == "train_and_eval":
        train_and_evaluate(devices)
    elif FLAGS.mode == "eval":
        dev = read_examples("dev_file")
        classification.print_scores(model_dir, dev, FLAGS.eval_batch_size, devices)
    else:
        new = read_examples("predict_file")
        found = classification.probabilities(model_dir, new, FLAGS.eval_batch_size, devices)
        path = os.path.join(FLAGS.output_dir, "predictions.tsv")
        write_predictions(path, *found)
        print(f"{len(new)} predictions: {path}")


def read_examples(flag: str) -> Examples:
    """The examples of the TSV file that a flag names; a file to be predicted has no labels."""
    if not FLAGS[flag].value:
        raise UserError(f"--{flag} is missing, and --mode={FLAGS.mode} needs it.")
    label_column = None if flag == "predict_file" else FLAGS.label_column
    return read_tsv(FLAGS[flag].value, FLAGS.text_column, FLAGS.pair_column, label_column)


def train_and_evaluate(devices: Devices) -> None:
    """Trains, and keeps the model with the best accuracy on --dev_file."""
    training, dev = read_examples("train_file"), read_examples("dev_file")
    labels = label_names(training)
    start, vocab_file = shared_flags.initial_model(), shared_flags.vocabulary_file()
    tokenizer = load_tokenizer(vocab_file)
    config = start.config(tokenizer.vocab_size, FLAGS.max_seq_length, vocab_file)
    encoding = classification.TextEncoding(tokenizer, labels, FLAGS.max_seq_length)
    data = classification.training_data(training, encoding, FLAGS.train_batch_size, FLAGS.seed)
    num_steps = max(1, int(len(training) * FLAGS.num_train_epochs / FLAGS.train_batch_size))
    recipe = Recipe(FLAGS.learning_rate, num_steps, int(num_steps * FLAGS.warmup_proportion))
    keras.utils.set_random_seed(FLAGS.seed)
    with devices.strategy.scope():
        model = AlbertClassifier(
            config, len(labels), FLAGS.classifier_dropout, packed=devices.packed
        )
        start.load_encoder(model)
    settings = shared_flags.run_settings(
        shared_flags.optimizer_settings(recipe), shared_flags.loop_settings(recipe)
    )
    classification.finetune(model, data, dev, encoding, settings, devices)


if __name__ == "__main__":
    define_flags()
    run_binary(lambda: run_supervised(main, FLAGS.max_failures, FLAGS.output_dir))
