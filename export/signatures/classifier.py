"""Classification: a text, or a pair of texts -> a label and probabilities.

Shapes: B batch, S sequence, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from export import finetuned
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


def expected(loaded: LoadedModel) -> Expected:
    """The answers of fine-tuning to all signatures of ClassifierModule."""

    def answered(pairs: Sequence[str] | None = None) -> tuple[dict, dict]:
        """The model's inputs, and fine-tuning's answer by the names of the outputs."""
        split = finetuned.text_split(TEXTS, pairs)
        found = finetuned.answer(finetuned.CLASSES, loaded, split)
        values, probabilities, _ = found.predictions
        outputs = {"logits": found.outputs["logits"], "probabilities": probabilities}
        if finetuned.are_decided(probabilities):
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
