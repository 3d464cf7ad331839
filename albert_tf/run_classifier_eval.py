"""What run_classifier does with the best model of a run: scores on labelled lines, predictions."""

from __future__ import annotations

import os

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.metrics import classification_scores
from albert_tf.training.devices import is_packed
from albert_tf.training.report.cards import print_comparison
from data_pipeline.command_line import flags
from data_pipeline.finetuning.classification import (
    Examples,
    encode_classification,
    read_tsv,
    write_predictions,
)
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS


def model_dir() -> str:
    """The folder of this run's best model."""
    return os.path.join(FLAGS.output_dir, "model")


def read_examples(flag: str) -> Examples:
    """The TSV file that a flag names; a file to be predicted has no labels."""
    if not FLAGS[flag].value:
        raise UserError(f"--{flag} is missing, and --mode={FLAGS.mode} needs it.")
    label_column = None if flag == "predict_file" else FLAGS.label_column
    return read_tsv(FLAGS[flag].value, FLAGS.text_column, FLAGS.pair_column, label_column)


def probabilities(
    strategy: tf.distribute.Strategy, examples: Examples
) -> tuple[list[str], np.ndarray]:
    """The labels that the best model of this run knows, and their probabilities float32 [N, C]."""
    metadata = native.read_metadata(model_dir())
    with strategy.scope():
        model = native.load_model(model_dir(), is_packed())
    tokenizer = load_tokenizer(native.vocabulary_file(model_dir()))
    arrays = encode_classification(examples, tokenizer, metadata["max_seq_length"])
    logits = model.predict(arrays, batch_size=FLAGS.eval_batch_size, verbose=0)
    return metadata["labels"], tf.nn.softmax(logits).numpy()


def report(strategy: tf.distribute.Strategy, examples: Examples) -> None:
    """Prints the best model's scores on a labelled file, beside always guessing one label."""
    labels, scores = probabilities(strategy, examples)
    predicted = [labels[index] for index in scores.argmax(axis=1)]
    majority = [max(labels, key=examples.labels.count)] * len(examples)
    model_scores = classification_scores(examples.labels, predicted)
    baseline = classification_scores(examples.labels, majority)
    rows = {name: (score, baseline[name], "majority") for name, score in model_scores.items()}
    print_comparison(f"Best model on {examples.source}, {len(examples)} examples", rows)


def predict(strategy: tf.distribute.Strategy) -> None:
    """Writes predictions.tsv: label and probability of each class for every line."""
    examples = read_examples("predict_file")
    path = os.path.join(FLAGS.output_dir, "predictions.tsv")
    write_predictions(path, *probabilities(strategy, examples))
    print(f"{len(examples)} predictions: {path}")
