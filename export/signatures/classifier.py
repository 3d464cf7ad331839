"""Classification: a text or a pair of texts -> one or several labels, and probabilities.

Shapes: B batch, S sequence, C classes, L the most labels of a row.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from albert_tf.finetuning.tasks.base import Task
from export import finetuned
from export.encoding import padded
from export.model_folder import LoadedModel
from export.probes import PAIRS, TEXTS, Expected, text_array
from export.signatures.common import (
    DEFAULT_SIGNATURE,
    Signatures,
    Tensors,
    TextModule,
    graph_function,
    named,
    parse_texts,
)


class ClassifierModule(TextModule):
    """Text, text pairs, tokens or tf.Examples -> label and probabilities."""

    def __init__(self, loaded: LoadedModel) -> None:
        super().__init__(loaded)
        self._labels = loaded.labels

    def answer(self, inputs: Tensors) -> Tensors:
        """Logits, probabilities float32 [B, C]; label string [B]; label_id int32 [B]."""
        logits = self.forward(inputs)
        label_id = tf.argmax(logits, axis=-1, output_type=tf.int32)
        return {
            "logits": logits,
            "probabilities": tf.nn.softmax(logits),
            "label": tf.gather(tf.constant(self._labels), label_id),
            "label_id": label_id,
        }

    @graph_function(input_signature=[named("inputs")])
    def serve_examples(self, inputs: tf.Tensor) -> Tensors:
        """TF Serving's Classify: serialized tf.Examples [B] -> classes string, scores float32.

        Both are [B, C]. Features are `text`, and optionally `text_b`, one string each.
        """
        scores = self.answer(self.text_encoder(*parse_texts(inputs)))["probabilities"]
        classes = tf.tile(tf.constant([self._labels]), [tf.shape(scores)[0], 1])  # [B, C]
        return {"classes": classes, "scores": scores}

    def signatures(self) -> Signatures:
        return {**super().signatures(), "classify": self.serve_examples}


class MultiLabelModule(ClassifierModule):
    """Text, text pairs, tokens or tf.Examples -> any number of labels, and probabilities."""

    def __init__(self, loaded: LoadedModel) -> None:
        super().__init__(loaded)
        self._threshold = _task(loaded).answer_settings["threshold"]

    def answer(self, inputs: Tensors) -> Tensors:
        """Logits, probabilities float32 [B, C]; labels string [B, L], filled with ""; num_labels
        int32 [B].
        """
        logits = self.forward(inputs)
        probabilities = tf.sigmoid(logits)
        holds = probabilities >= self._threshold
        counts = tf.reduce_sum(tf.cast(holds, tf.int32), axis=1)
        # Indices of the assigned labels, in order, padded with C, the index of "".
        count = len(self._labels)
        places = tf.sort(tf.where(holds, tf.range(count), count), axis=1)
        places = places[:, : tf.reduce_max(counts)]  # [B, L]
        return {
            "logits": logits,
            "probabilities": probabilities,
            "labels": tf.gather(tf.constant([*self._labels, ""]), places),
            "num_labels": counts,
        }


def make_module(loaded: LoadedModel) -> ClassifierModule:
    """The module for a model that gives one label or several."""
    return (MultiLabelModule if loaded.metadata.get("multi_label") else ClassifierModule)(loaded)


def _task(loaded: LoadedModel) -> Task:
    """The fine-tuning task that corresponds to a model."""
    task = finetuned.LABELS if loaded.metadata.get("multi_label") else finetuned.CLASSES
    return task.as_in(loaded.metadata)


def expected(loaded: LoadedModel) -> Expected:
    """The answers of fine-tuning to all signatures of a classifier."""

    task = _task(loaded)
    threshold = task.answer_settings.get("threshold")

    def answered(pairs: Sequence[str] | None = None) -> tuple[dict, dict]:
        """The model's inputs, and fine-tuning's answers by output name."""
        split = finetuned.text_split(TEXTS, pairs)
        found = finetuned.answer(task, loaded, split)
        values, probabilities, _ = found.predictions
        outputs = {"logits": found.outputs["logits"], "probabilities": probabilities}
        if threshold is not None:
            # Compare labels only if no probability is within rounding of the threshold.
            if (np.abs(probabilities - threshold) > finetuned.TIE).all():
                names = [text_array([*itertools.compress(loaded.labels, row)]) for row in values]
                outputs["labels"] = padded(names, b"")
                outputs["num_labels"] = np.sum(values, axis=1, dtype=np.int32)
        elif finetuned.are_decided(probabilities):
            outputs["label_id"] = np.array(values)
            outputs["label"] = text_array([loaded.labels[value] for value in values])
        return found.inputs, outputs

    tokens, alone = answered()
    classes = np.tile(text_array(loaded.labels), [len(TEXTS), 1])
    answers = {
        DEFAULT_SIGNATURE: alone,
        "text_pair": answered(PAIRS)[1],
        "tokens": alone,
        "classify": {"classes": classes, "scores": alone["probabilities"]},
    }
    return Expected(answers, tokens)
