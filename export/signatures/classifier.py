"""Classification: a text, or a pair of texts -> a label and probabilities.

Shapes: B batch, S sequence, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.text_graph import TextEncoder
from export.encoding import encode_batch
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
    tensors,
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
    """Probes of ClassifierModule's four signatures.

    Args:
      model: the model in Keras.
      vocabulary: the Python tokenizer.
      labels: C names, by class id.
      max_seq_length: longest sequence that a text becomes.

    Returns:
      One probe for each signature.
    """
    single = encode_batch(vocabulary, TEXTS, max_seq_length)
    expected = _classify(model, single)
    pair = encode_batch(vocabulary, TEXTS, max_seq_length, PAIRS)
    classes = np.tile(np.array([label.encode() for label in labels], dtype=object), [len(TEXTS), 1])
    as_classes = {"classes": classes, "scores": expected["probabilities"]}
    return [
        Probe(DEFAULT_SIGNATURE, {"text": text_array(TEXTS)}, expected),
        Probe(
            "text_pair",
            {"text_a": text_array(TEXTS), "text_b": text_array(PAIRS)},
            _classify(model, pair),
        ),
        Probe("tokens", single, expected),
        Probe("classify", {"inputs": serialized_examples(TEXTS)}, as_classes),
    ]


def _classify(model: AlbertClassifier, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    logits = model(tensors(inputs), training=False)
    return {"logits": logits.numpy(), "probabilities": tf.nn.softmax(logits).numpy()}


def export(loaded: LoadedModel) -> Export:
    """The module of a classifier, and its probes."""
    module = ClassifierModule(loaded.model, loaded.text_encoder(), loaded.labels, loaded.files())
    return module, classifier_probes(
        loaded.model, loaded.vocabulary, loaded.labels, loaded.max_seq_length
    )
