"""Classification of texts and pairs of texts: training, scores on labeled lines, predictions."""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.costs import encoder_flops_per_token
from albert_tf.errors import UserError
from albert_tf.metrics import classification_scores
from albert_tf.models import AlbertClassifier
from albert_tf.tasks import ClassificationTask
from albert_tf.training import Evaluator, experiment, run_folder
from albert_tf.training.devices import Devices
from albert_tf.training.evaluation import evaluation_batch_size, print_comparison
from albert_tf.training.experiment import Experiment, ModelFolders, RunSettings, TrainingData
from data_pipeline.finetuning.classification import (
    Examples,
    classification_dataset,
    encode_classification,
)
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer


@dataclasses.dataclass(frozen=True)
class TextEncoding:
    """A function from texts and labels to the inputs of a model.

    Attributes:
      tokenizer: of the model.
      labels: names of the C classes in order; a class's id is its place.
      max_seq_length: S; longer texts are cut.
    """

    tokenizer: Tokenizer
    labels: Sequence[str]
    max_seq_length: int

    def __call__(self, examples: Examples) -> dict[str, np.ndarray]:
        """Inputs and labels as arrays by name, see `encode_classification`."""
        return encode_classification(examples, self.tokenizer, self.max_seq_length, self.labels)


def training_data(
    examples: Examples, encoding: TextEncoding, batch_size: int, seed: int
) -> TrainingData:
    """Labeled examples as the data of a run.

    Args:
      examples: texts with their labels.
      encoding: makes arrays of them.
      batch_size: B, over all replicas.
      seed: of the order, and of dropout.

    Returns:
      Data whose number of examples is known.
    """
    arrays = encoding(examples)
    return TrainingData(
        name=examples.source,
        batches=functools.partial(classification_dataset, arrays, batch_size, seed=seed),
        batch_size=batch_size,
        seed=seed,
        num_examples=len(examples),
        max_seq_length=encoding.max_seq_length,
        vocab_size=encoding.tokenizer.vocab_size,
        must_not_change={
            "num_examples": len(examples),
            "labels": list(encoding.labels),  # As JSON gives them back.
            "vocab_fingerprint": encoding.tokenizer.fingerprint,
            "examples": run_folder.fingerprint(arrays),
        },
    )


def finetune(
    model: AlbertClassifier,
    data: TrainingData,
    dev: Examples,
    encoding: TextEncoding,
    settings: RunSettings,
    devices: Devices,
) -> dict[str, float]:
    """Trains a classifier, and keeps the model with the best accuracy in the folder `model`.

    Args:
      model: made in the scope of `devices`.
      data: of `training_data`.
      dev: labeled examples that decide which model is best.
      encoding: that of `data`.
      settings: folder, optimizer and loop.
      devices: those that the model computes on.

    Returns:
      The figures of the last model on `dev`.
    """
    task, num_steps = ClassificationTask(model), settings.loop.num_train_steps
    eval_batch = evaluation_batch_size(
        model.config,
        settings.eval_batch_size,
        encoding.max_seq_length,
        len(dev),
        devices.strategy,
    )
    dev_data = functools.partial(classification_dataset, encoding(dev), eval_batch, training=False)
    updates = f"{num_steps}"
    if data.num_examples:
        passes = num_steps * data.batch_size / data.num_examples
        updates += f" ({passes:.1f} passes over {data.num_examples} examples)"
    folder = os.path.join(settings.output_dir, "model")
    return experiment.run(
        Experiment(
            title="Fine-tuning",
            task=task,
            data=data,
            settings=settings,
            models=_model_folders(encoding),
            flops_per_token=3 * encoder_flops_per_token(model.config, encoding.max_seq_length),
            evaluator=Evaluator([(task, dev_data)], devices.strategy),
            card={
                "updates": updates,
                "expected first loss": f"{math.log(model.num_classes):.2f} (ln "
                f"{model.num_classes})",
            },
            print_results=lambda _: print_scores(folder, dev, settings.eval_batch_size, devices),
            next_commands=[
                f"python -m export.run_export --model_dir={folder} --task=classifier "
                "--output_dir=..."
            ],
        )
    )


def _model_folders(encoding: TextEncoding) -> ModelFolders:
    """The best model alone, as the run keeps it."""
    return ModelFolders(
        best="model",
        last=None,
        metric="accuracy",
        higher_is_better=True,
        metadata={
            "labels": list(encoding.labels),  # As JSON gives them back.
            "max_seq_length": encoding.max_seq_length,
            "vocab_fingerprint": encoding.tokenizer.fingerprint,
        },
        vocab_file=encoding.tokenizer.vocab_file,
        tokenizer=dataclasses.asdict(encoding.tokenizer.settings),
    )


def probabilities(
    folder: str, examples: Examples, batch_size: int, devices: Devices
) -> tuple[list[str], np.ndarray]:
    """The probabilities of every label, for each example.

    Args:
      folder: the model folder.
      examples: M texts; their own labels are not read.
      batch_size: B, over all replicas.
      devices: those that the model computes on.

    Returns:
      The model's C labels, and probabilities float32 [M, C].
    """
    metadata = native.read_metadata(folder)
    with devices.strategy.scope():
        model = native.load_model(folder, devices.packed)
    tokenizer = load_tokenizer(native.vocabulary_file(folder))
    arrays = encode_classification(examples, tokenizer, metadata["max_seq_length"])
    logits = model.predict(arrays, batch_size=batch_size, verbose=0)
    return metadata["labels"], tf.nn.softmax(logits).numpy()


def print_scores(folder: str, examples: Examples, batch_size: int, devices: Devices) -> None:
    """Prints a model's scores on labeled examples, beside always guessing the same label.

    Args:
      folder: the model folder.
      examples: texts with their labels.
      batch_size: B, over all replicas.
      devices: those that the model computes on.

    Raises:
      UserError: the examples have no labels.
    """
    if examples.labels is None:
        raise UserError(
            f"{examples.source} has no labels, and scores compare with them. Name its column of "
            "labels, or predict instead."
        )
    labels, scores = probabilities(folder, examples, batch_size, devices)
    predicted = [labels[index] for index in scores.argmax(axis=1)]
    majority = [max(labels, key=examples.labels.count)] * len(examples)
    model_scores = classification_scores(examples.labels, predicted)
    baseline = classification_scores(examples.labels, majority)
    figures = {name: (score, baseline[name], "majority") for name, score in model_scores.items()}
    print_comparison(f"Best model on {examples.source}, {len(examples)} examples", figures)
