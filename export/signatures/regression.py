"""Regression: a text, or a pair of texts -> a number."""

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


class RegressionModule(TextModule):
    """Text, text pairs, tokens or tf.Examples -> a number.

    Args:
      model: AlbertClassifier with one class.
      text: tokenizer and packing.
      files: paths of the files to carry along as assets.
    """

    def __init__(self, model: AlbertClassifier, text: TextEncoder, files: Sequence[str]) -> None:
        super().__init__("regression", model, text, files)

    def answer(self, inputs: Tensors) -> Tensors:
        """The number of each row: value float32 [B]."""
        return {"value": self.forward(inputs)[:, 0]}

    @graph_function(input_signature=[named("inputs")])
    def serve_examples(self, inputs: tf.Tensor) -> Tensors:
        """TF Serving's Regress: serialized tf.Examples [B] -> outputs float32 [B].

        Features are `text`, and optionally `text_b`, one string each.
        """
        return {"outputs": self.answer(self.text_encoder(*parse_texts(inputs)))["value"]}

    def signatures(self) -> Signatures:
        return {**super().signatures(), "regress": self.serve_examples}


def regression_probes(
    model: AlbertClassifier, vocabulary: Tokenizer, max_seq_length: int
) -> list[Probe]:
    """Probes of RegressionModule's four signatures, as fine-tuning predicts: the logit itself.

    Args:
      model: the model in Keras.
      vocabulary: the Python tokenizer.
      max_seq_length: longest sequence that a text becomes.

    Returns:
      One probe for each signature.
    """

    lengths = LengthSettings(max_seq_length)

    def answered(pairs: Sequence[str] | None = None) -> tuple[dict, np.ndarray]:
        """The model's inputs, and the numbers of fine-tuning."""
        split = finetuned.text_split(TEXTS, pairs)
        found = finetuned.answer(finetuned.NUMBERS, model, vocabulary, split, lengths)
        return found.inputs, np.array(found.predictions.values)

    single, alone = answered()
    return [
        Probe(DEFAULT_SIGNATURE, {"text": text_array(TEXTS)}, {"value": alone}),
        Probe(
            "text_pair",
            {"text_a": text_array(TEXTS), "text_b": text_array(PAIRS)},
            {"value": answered(PAIRS)[1]},
        ),
        Probe("tokens", single, {"value": alone}),
        Probe("regress", {"inputs": serialized_examples(TEXTS)}, {"outputs": alone}),
    ]


def export(loaded: LoadedModel) -> Export:
    """The module of a regression, and its probes."""
    module = RegressionModule(loaded.model, loaded.text_encoder(), loaded.files())
    return module, regression_probes(loaded.model, loaded.vocabulary, loaded.max_seq_length)
