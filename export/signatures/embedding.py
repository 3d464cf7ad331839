"""Embeddings: a text -> vectors of length 1; two texts -> how similar they are.

Shapes: B batch, S sequence, H hidden.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from albert_tf.models import AlbertEncoder, AlbertSentenceEncoder
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.text_graph import TextEncoder
from export.encoding import encode_batch
from export.finetuned import outputs_of
from export.graphs.checks import same_rows
from export.model_folder import LoadedModel
from export.probes import PAIRS, TEXTS, Export, Probe, text_array
from export.signatures.common import (
    DEFAULT_SIGNATURE,
    Signatures,
    Tensors,
    TextModule,
    graph_function,
    named,
)

_SHORTEST = 1e-12  # A vector of zeros stays one.


class EmbeddingModule(TextModule):
    """Texts or tokens -> two vectors; two texts -> the cosines between theirs.

    Args:
      model: AlbertSentenceEncoder.
      text: tokenizer and packing.
      files: paths of the files to carry along as assets.
    """

    def __init__(
        self, model: AlbertSentenceEncoder, text: TextEncoder, files: Sequence[str]
    ) -> None:
        super().__init__("embedding", model, text, files)

    def answer(self, inputs: Tensors) -> Tensors:
        """Vectors of length 1, float32 [B, H]: embedding, the mean over tokens; pooled."""
        outputs = self.forward(inputs)
        return {
            "embedding": _normalized(outputs["mean_output"]),
            "pooled": _normalized(outputs["pooled_output"]),
        }

    @graph_function(input_signature=[named("text_a"), named("text_b")])
    def serve_similarity(self, text_a: tf.Tensor, text_b: tf.Tensor) -> Tensors:
        """string [B] twice -> float32 [B] twice, from -1 to 1.

        Returns:
          similarity, the cosine between the embeddings of both; pooled_similarity, that between
          their pooled vectors.
        """
        text_a, text_b = same_rows(text_a=text_a, text_b=text_b)
        first, second = (self.answer(self.text_encoder(text)) for text in (text_a, text_b))
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


def embedding_probes(
    model: AlbertSentenceEncoder, vocabulary: Tokenizer, max_seq_length: int
) -> list[Probe]:
    """Probes of EmbeddingModule's three signatures.

    Args:
      model: the model in Keras.
      vocabulary: the Python tokenizer.
      max_seq_length: longest sequence that a text becomes.

    Returns:
      One probe for each signature.
    """

    def vectors(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs = outputs_of(model, inputs)
        named_so = {"embedding": "mean_output", "pooled": "pooled_output"}
        found = {name: outputs[other] for name, other in named_so.items()}
        return {
            name: value / np.linalg.norm(value, axis=1, keepdims=True)
            for name, value in found.items()
        }

    single = encode_batch(vocabulary, TEXTS, max_seq_length)
    first = vectors(single)
    second = vectors(encode_batch(vocabulary, PAIRS, max_seq_length))
    cosines = {
        output: (first[name] * second[name]).sum(axis=1)
        for name, output in (("embedding", "similarity"), ("pooled", "pooled_similarity"))
    }
    both = {"text_a": text_array(TEXTS), "text_b": text_array(PAIRS)}
    return [
        Probe(DEFAULT_SIGNATURE, {"text": text_array(TEXTS)}, first),
        Probe("similarity", both, cosines),
        Probe("tokens", single, first),
    ]


def sentence_encoder(encoder: AlbertEncoder) -> AlbertSentenceEncoder:
    """A sentence encoder around an encoder, of whatever model it is a part."""
    model = AlbertSentenceEncoder(encoder.config, packed=encoder.packed)
    model.encoder = encoder
    return model


def export(loaded: LoadedModel) -> Export:
    """The module of an embedding, and its probes."""
    model = loaded.model
    if not isinstance(model, AlbertSentenceEncoder):
        model = sentence_encoder(loaded.encoder)
    module = EmbeddingModule(model, loaded.text_encoder(), loaded.files())
    return module, embedding_probes(model, loaded.vocabulary, loaded.max_seq_length)
