"""Regression: a text, or a pair of texts -> a number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from export import finetuned
from export.model_folder import LoadedModel
from export.probes import PAIRS, TEXTS, Expected
from export.signatures.common import (
    DEFAULT_SIGNATURE,
    Signatures,
    Tensors,
    TextModule,
    graph_function,
    named,
    parse_texts,
)


class RegressionModule(TextModule):
    """Text, text pairs, tokens or tf.Examples -> a number, the logit of a model with one class."""

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


def expected(loaded: LoadedModel) -> Expected:
    """The answers of fine-tuning to all signatures of RegressionModule: the logits themselves."""

    def answered(pairs: Sequence[str] | None = None) -> tuple[dict, np.ndarray]:
        split = finetuned.text_split(TEXTS, pairs)
        found = finetuned.answer(finetuned.NUMBERS, loaded, split)
        return found.inputs, np.array(found.predictions.values)

    tokens, alone = answered()
    answers = {
        DEFAULT_SIGNATURE: {"value": alone},
        "text_pair": {"value": answered(PAIRS)[1]},
        "tokens": {"value": alone},
        "regress": {"outputs": alone},
    }
    return Expected(answers, tokens)
