"""Fine-tunes an ALBERT to classify sentences or sentence pairs from TSV files, evaluates it,
predicts with it.

    python -m albert_tf.run_classifier --init_checkpoint=runs/base/model \
        --train_file=train.tsv --dev_file=dev.tsv --output_dir=runs/mytask
    python -m albert_tf.run_classifier --mode=predict --output_dir=runs/mytask
    --predict_file=new.tsv

A TSV file has a header; by default its columns are `text` and `label`.
"""

from __future__ import annotations

import csv
import dataclasses
import os

import numpy as np
import sklearn.metrics
import tensorflow as tf
from absl import flags

from albert_tf import flags as shared_flags
from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertClassifier
from albert_tf.tasks import ClassificationTask
from albert_tf.training import run_folder
from albert_tf.training.cards import print_classification_start
from albert_tf.training.loop import train
from albert_tf.training.steps import Stepper
from albert_tf.training.strategy import make_strategy
from data_pipeline.classification import (
    Examples,
    classification_dataset,
    encode_classification,
    label_names,
    read_tsv,
)
from data_pipeline.errors import run_binary
from data_pipeline.tokenization import SentencePieceTokenizer, load_tokenizer

FLAGS = flags.FLAGS

shared_flags.define_run_flags(modes=("train_and_eval", "eval", "predict"))
shared_flags.define_model_flags()
shared_flags.define_training_flags(optimizer="adamw", learning_rate=2e-5, train_batch_size=32)
shared_flags.define_device_flags()
flags.DEFINE_string("train_file", None, "TSV to train on.")
flags.DEFINE_string("dev_file", None, "TSV to evaluate on, and to choose the best model by.")
flags.DEFINE_string(
    "predict_file", None, "TSV to predict; predictions.tsv is written to --output_dir."
)
flags.DEFINE_string("text_column", "text", "Column of the (first) sentence.")
flags.DEFINE_string("pair_column", None, "Column of the second sentence, for pairs.")
flags.DEFINE_string("label_column", "label", "Column of the label.")
flags.DEFINE_string(
    "vocab_file", None, "SentencePiece model, where --init_checkpoint is no model folder."
)
flags.DEFINE_integer("max_seq_length", 128, "Longer texts are cut.", lower_bound=4)
flags.DEFINE_float("num_train_epochs", 3.0, "Passes over the training file.", lower_bound=0.001)
flags.DEFINE_float("warmup_proportion", 0.1, "Share of the updates in which the rate rises.", 0, 1)
flags.DEFINE_float("classifier_dropout", 0.1, "Dropout before the output layer.", 0, 0.99)


def main() -> None:
    strategy = make_strategy(FLAGS.distribution, FLAGS.tpu)
    keras.mixed_precision.set_global_policy(FLAGS.precision)
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
    vocabulary, tokenizer = find_vocabulary()
    config = shared_flags.model_config(inherited_config(), tokenizer.vocab_size)
    shared_flags.check_lengths(config, FLAGS.max_seq_length, tokenizer.vocab_size, vocabulary)
    run_folder.prepare(FLAGS.output_dir, config, shared_flags.flag_values(), FLAGS.overwrite)
    num_steps = max(1, int(len(training) * FLAGS.num_train_epochs / FLAGS.train_batch_size))
    keras.utils.set_random_seed(FLAGS.seed)
    with strategy.scope():
        model = AlbertClassifier(config, len(labels), FLAGS.classifier_dropout)
        if FLAGS.init_checkpoint:
            native.load_weights(
                model,
                FLAGS.init_checkpoint,
                allow_missing=["^classification/"],
                allow_unused=["^masked_lm/", "^sentence_order/", "^cls/"],
            )
        optimizer = shared_flags.make_optimizer(num_steps, int(num_steps * FLAGS.warmup_proportion))
    arrays = encode_classification(training, tokenizer, FLAGS.max_seq_length, labels)
    dev_data = dataset(encode_classification(dev, tokenizer, FLAGS.max_seq_length, labels))
    print_classification_start(
        model, strategy, len(training), FLAGS.max_seq_length, FLAGS.train_batch_size, num_steps
    )
    model_dir = os.path.join(FLAGS.output_dir, "model")

    def training_data(start_step: int) -> tf.data.Dataset:
        return classification_dataset(
            arrays, FLAGS.train_batch_size, seed=FLAGS.seed, training=True, start_step=start_step
        )

    def keep_best(step: int, metrics: dict[str, float]) -> None:
        best = native.read_metadata(model_dir)["metrics"] if tf.io.gfile.exists(model_dir) else None
        if best is None or metrics["accuracy"] > best["accuracy"]:
            metadata = {
                "labels": labels,
                "max_seq_length": FLAGS.max_seq_length,
                "vocab_fingerprint": tokenizer.fingerprint,
                "step": step,
                "metrics": metrics,
            }
            text_settings = dataclasses.asdict(tokenizer.settings)
            native.save(model, model_dir, metadata, vocabulary, text_settings)

    stepper = Stepper(ClassificationTask(model), optimizer, strategy, FLAGS.seed)
    tokens = FLAGS.train_batch_size * FLAGS.max_seq_length
    settings = shared_flags.loop_settings(num_steps)
    train(stepper, training_data, dev_data, settings, FLAGS.output_dir, tokens, keep_best)
    report(strategy, dev)
    print(
        f"Model: {model_dir}\nNext: python -m export.run_export --model_dir={model_dir} "
        "--task=classifier "
        "--output_dir=..."
    )


def read_examples(flag: str, labelled: bool = True) -> Examples:
    """The TSV file that a flag names."""
    if not FLAGS[flag].value:
        raise UserError(f"--{flag} is missing, and --mode={FLAGS.mode} needs it.")
    return read_tsv(
        FLAGS[flag].value,
        FLAGS.text_column,
        FLAGS.pair_column,
        FLAGS.label_column if labelled else None,
    )


def inherited_config():
    """The configuration of the model folder in --init_checkpoint, if it is one."""
    folder = FLAGS.init_checkpoint
    return native.read_config(folder) if folder and tf.io.gfile.isdir(folder) else None


def find_vocabulary() -> tuple[str, SentencePieceTokenizer]:
    """The vocabulary file of --vocab_file or of the model folder in --init_checkpoint, and its
    tokenizer.
    """
    path = FLAGS.vocab_file
    if not path and FLAGS.init_checkpoint and tf.io.gfile.isdir(FLAGS.init_checkpoint):
        path = os.path.join(FLAGS.init_checkpoint, "spiece.model")
    if not path:
        raise UserError(
            "--vocab_file is missing: --init_checkpoint is no model folder, which would have one."
        )
    return path, load_tokenizer(path)


def dataset(arrays: dict[str, np.ndarray]) -> tf.data.Dataset:
    """Batches for evaluation, in the order of the file."""
    return classification_dataset(arrays, FLAGS.eval_batch_size, seed=0, training=False)


def predictions(
    strategy: tf.distribute.Strategy, examples: Examples
) -> tuple[list[str], np.ndarray]:
    """Labels of the best model of this run, probabilities float32 [N, C]."""
    folder = os.path.join(FLAGS.output_dir, "model")
    metadata = native.read_metadata(folder)
    with strategy.scope():
        model = native.load_model(folder)
    tokenizer = load_tokenizer(os.path.join(folder, "spiece.model"))
    arrays = encode_classification(examples, tokenizer, metadata["max_seq_length"], None)
    logits = model.predict(arrays, batch_size=FLAGS.eval_batch_size, verbose=0)
    return metadata["labels"], tf.nn.softmax(logits).numpy()


def report(strategy: tf.distribute.Strategy, examples: Examples) -> None:
    """Prints the scores of the best model on a labelled file, beside those of always guessing its
    commonest label.
    """
    labels, probabilities = predictions(strategy, examples)
    predicted = [labels[index] for index in probabilities.argmax(axis=1)]
    commonest = max(labels, key=examples.labels.count)
    majority = [commonest] * len(examples)
    print(f"Best model on {FLAGS.dev_file} ({len(examples)} examples)     model  majority")
    for name, score in (
        ("accuracy", sklearn.metrics.accuracy_score),
        ("macro F1", lambda y, p: sklearn.metrics.f1_score(y, p, average="macro", zero_division=0)),
        ("Matthews correlation", sklearn.metrics.matthews_corrcoef),
    ):
        scores = [score(examples.labels, answers) for answers in (predicted, majority)]
        print(f"  {name:<22} {scores[0]:.4f}  {scores[1]:.4f}")


def predict(strategy: tf.distribute.Strategy) -> None:
    """Writes predictions.tsv: label and probability of each class for every line."""
    examples = read_examples("predict_file", labelled=False)
    labels, probabilities = predictions(strategy, examples)
    path = os.path.join(FLAGS.output_dir, "predictions.tsv")
    with tf.io.gfile.GFile(path, "w") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(["label", *labels])
        writer.writerows(
            [labels[row.argmax()], *(f"{value:.6f}" for value in row)] for row in probabilities
        )
    print(f"{len(examples)} predictions: {path}")


if __name__ == "__main__":
    run_binary(main, user_errors=[UserError])
