"""Classification: a text, or a pair of texts -> a label and probabilities.

Shapes: B batch, S sequence, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.text_graph import TextEncoder
from export import finetuned
from export.model_folder import LoadedModel
from export.probes import PAIRS, TEXTS, Export, Probe, serialized_examples, text_array
from export.signatures.common import (
    DEFAULT_SIGNATURE,
    Signatures,
    Tensors,
    TextModule,
    graph_function,
    named,
    parse_texts,
)

if TYPE_CHECKING:
    from albert_tf.models import AlbertClassifier


class ClassifierModule(TextModule):
    """Text, text pairs, tokens or tf.Examples -> label and probabilities.

    Args:
      model: AlbertClassifier.
      text: tokenizer and packing.
      labels: C names, by class id.
      files: paths of the files to carry along as assets.
    """

    def __init__(
        self,
        model: AlbertClassifier,
        text: TextEncoder,
        labels: Sequence[str],
        files: Sequence[str],
    ) -> None:
        super().__init__("classifier", model, text, files)
        self._labels = tuple(labels)

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


def classifier_probes(
    model: AlbertClassifier, vocabulary: Tokenizer, labels: Sequence[str], max_seq_length: int
) -> list[Probe]:
    """Probes of ClassifierModule's four signatures, with the answers of fine-tuning.

    Args:
      model: the model in Keras.
      vocabulary: the Python tokenizer.
      labels: C names, by class id.
      max_seq_length: longest sequence that a text becomes.

    Returns:
      One probe for each signature.
    """
    lengths = LengthSettings(max_seq_length)

    def answered(pairs: Sequence[str] | None = None) -> tuple[dict, dict]:
        """The model's inputs, and the outputs that fine-tuning's answer means."""
        split = finetuned.text_split(TEXTS, pairs)
        found = finetuned.answer(finetuned.CLASSES, model, vocabulary, split, lengths, labels)
        values, probabilities, _ = found.predictions
        expected = {"logits": found.outputs["logits"], "probabilities": probabilities}
        if finetuned.are_decided(probabilities):
            expected["label_id"] = np.array(values)
            expected["label"] = text_array([labels[value] for value in values])
        return found.inputs, expected

    single, expected = answered()
    classes = np.tile(text_array(labels), [len(TEXTS), 1])
    return [
        Probe(DEFAULT_SIGNATURE, {"text": text_array(TEXTS)}, expected),
        Probe(
            "text_pair",
            {"text_a": text_array(TEXTS), "text_b": text_array(PAIRS)},
            answered(PAIRS)[1],
        ),
        Probe("tokens", single, expected),
        Probe(
            "classify",
            {"inputs": serialized_examples(TEXTS)},
            {"classes": classes, "scores": expected["probabilities"]},
        ),
    ]


def export(loaded: LoadedModel) -> Export:
    """The module of a classifier, and its probes."""
    module = ClassifierModule(loaded.model, loaded.text_encoder(), loaded.labels, loaded.files())
    return module, classifier_probes(
        loaded.model, loaded.vocabulary, loaded.labels, loaded.max_seq_length
    )
