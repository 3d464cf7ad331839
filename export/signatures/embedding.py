"""Embeddings: a text -> vectors of length 1; two texts -> their similarity.

Shapes: B batch, S sequence, H hidden.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

from albert_tf.models import AlbertSentenceEncoder
from export.encoding import encode_batch
from export.finetuned import outputs_of
from export.graphs.checks import same_rows
from export.model_folder import LoadedModel
from export.probes import PAIRS, TEXTS, Expected
from export.signatures.common import (
    DEFAULT_SIGNATURE,
    Signatures,
    Tensors,
    TextModule,
    graph_function,
    named,
)

_SHORTEST = 1e-12  # Smallest divisor, so that a zero vector stays zero.


class EmbeddingModule(TextModule):
    """Texts or tokens -> two vectors; two texts -> the cosines between their vectors."""

    def __init__(self, loaded: LoadedModel) -> None:
        super().__init__(as_sentence_encoder(loaded))

    def answer(self, inputs: Tensors) -> Tensors:
        """Vectors of length 1, float32 [B, H]: embedding, the mean over tokens; pooled."""
        outputs = self.forward(inputs)
        return {
            "embedding": _normalized(outputs["mean_output"]),
            "pooled": _normalized(outputs["pooled_output"]),
        }

    @graph_function(input_signature=[named("text_a"), named("text_b")])
    def serve_similarity(self, text_a: tf.Tensor, text_b: tf.Tensor) -> Tensors:
        """string [B] twice -> float32 [B] twice, from -1 to 1: similarity, the cosine between the
        embeddings of both; pooled_similarity, the cosine between their pooled vectors.
        """
        text_a, text_b = same_rows(text_a=text_a, text_b=text_b)
        first, second = (self.answer(self.text_encoder(text)) for text in (text_a, text_b))
        # The vectors have length 1, so the dot product is the cosine.
        return {
            "similarity": tf.reduce_sum(first["embedding"] * second["embedding"], axis=1),
            "pooled_similarity": tf.reduce_sum(first["pooled"] * second["pooled"], axis=1),
        }

    def signatures(self) -> Signatures:
        return {
            DEFAULT_SIGNATURE: self.serve_text,
            "similarity": self.serve_similarity,
            "tokens": self.serve_tokens,
        }


def _normalized(vectors: tf.Tensor) -> tf.Tensor:
    """float [B, H] -> float32 [B, H] of length 1."""
    vectors = tf.cast(vectors, tf.float32)
    squares = tf.reduce_sum(tf.square(vectors), axis=1, keepdims=True)
    return vectors * tf.math.rsqrt(tf.maximum(squares, _SHORTEST))


def expected(loaded: LoadedModel) -> Expected:
    """The expected vectors and cosines from Keras, for all signatures of EmbeddingModule."""
    model = as_sentence_encoder(loaded).model

    def vectors(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs = outputs_of(model, inputs)
        found = {"embedding": outputs["mean_output"], "pooled": outputs["pooled_output"]}
        return {
            name: value / np.linalg.norm(value, axis=1, keepdims=True)
            for name, value in found.items()
        }

    tokens = encode_batch(loaded.vocabulary, TEXTS, loaded.max_seq_length)
    first = vectors(tokens)
    second = vectors(encode_batch(loaded.vocabulary, PAIRS, loaded.max_seq_length))
    cosines = {
        output: (first[name] * second[name]).sum(axis=1)
        for name, output in (("embedding", "similarity"), ("pooled", "pooled_similarity"))
    }
    answers = {DEFAULT_SIGNATURE: first, "similarity": cosines, "tokens": first}
    return Expected(answers, tokens)


def as_sentence_encoder(loaded: LoadedModel) -> LoadedModel:
    """The same folder, with an AlbertSentenceEncoder around its encoder as the model."""
    if isinstance(loaded.model, AlbertSentenceEncoder):
        return loaded
    encoder = loaded.encoder
    model = AlbertSentenceEncoder(encoder.config, packed=encoder.packed)
    model.encoder = encoder
    return dataclasses.replace(loaded, model=model)
