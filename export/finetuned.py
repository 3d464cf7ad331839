"""The answers of fine-tuning itself: its features, the Keras model, its decision rules.

Exports must give the same answers as `run_finetuning --mode=predict`.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf.finetuning.tasks.base import Predictions, StoredOutputs, Task
from albert_tf.finetuning.tasks.table import TASKS, Classes, own_classes
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.features import LengthSettings
from export.encoding import text_examples
from export.model_folder import LoadedModel

CLASSES, LABELS, NUMBERS = TASKS["tsv"], own_classes(Classes(multi_label=True)), TASKS["regression"]
CHOICES, TAGS = TASKS["race"], TASKS["tagging"]
TIE = 1e-4  # Answers whose scores are closer than this may swap places.


class Finetuned(NamedTuple):
    """The intermediate results of fine-tuning for some examples.

    Attributes:
      inputs: the model's inputs by name, trimmed to the longest sequence.
      outputs: the model's outputs by name; `logits` if there is a single one.
      stored: the part of the outputs from which the answers are computed.
      predictions: the answers of fine-tuning.
    """

    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    features: Features
    stored: StoredOutputs
    predictions: Predictions


def answer(
    task: Task, loaded: LoadedModel, split: Split, lengths: LengthSettings | None = None
) -> Finetuned:
    """The answers of a model to unlabeled examples. By default, texts are truncated to the model's
    own length.
    """
    lengths = lengths or LengthSettings(loaded.max_seq_length)
    with contextlib.redirect_stdout(io.StringIO()):  # It prints a note about truncated words.
        features = task.features(split, loaded.vocabulary, lengths, loaded.labels, False)
    inputs = features.inputs(np.arange(len(features)), features.max_seq_length)
    outputs = outputs_of(loaded.model, inputs)
    stored = task.keep(features, outputs)
    predictions = task.answer(features, [stored])
    longest = int(features.lengths.max())
    trimmed = {name: value[..., :longest] for name, value in inputs.items()}
    return Finetuned(trimmed, outputs, features, stored, predictions)


def outputs_of(model: Any, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of a Keras model, by name; `logits` if there is a single one."""
    # Exports are checked on the CPU; a GPU rounds differently.
    with tf.device("CPU:0"):
        outputs = model({name: tf.constant(each) for name, each in inputs.items()}, training=False)
    named = outputs if isinstance(outputs, dict) else {"logits": outputs}
    return {name: np.asarray(value) for name, value in named.items()}


def are_decided(probabilities: np.ndarray) -> bool:
    """Whether the best class of every row, float [N, C], leads by more than rounding errors."""
    best = np.sort(probabilities, axis=1)[:, -2:]
    return best.shape[1] < 2 or bool((best[:, 1] - best[:, 0] > TIE).all())


def text_split(texts: Sequence[str], pairs: Sequence[str] | None = None) -> Split:
    """Texts, or pairs of texts, as examples."""
    return Split("probes", text_examples(texts, pairs))
