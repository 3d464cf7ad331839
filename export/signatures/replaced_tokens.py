"""Replaced tokens: a text -> for each piece, the probability that it was replaced.

Shapes: B batch, S sequence, P pieces.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from data_pipeline.finetuning.alignment import align
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.graph_characters import Characters
from data_pipeline.tokenizers.graph_offsets import align_graph
from export.encoding import encode_batch
from export.finetuned import outputs_of
from export.graphs.checks import same_rows
from export.model_folder import LoadedModel
from export.probes import TEXTS, Expected, places, text_array
from export.signatures.common import (
    DEFAULT_SIGNATURE,
    TOKENS,
    ModelModule,
    Signatures,
    Tensors,
    graph_function,
    named,
)


class ReplacedTokensModule(ModelModule):
    """Texts or tokens -> the probability that each piece is not the original one."""

    def __init__(self, loaded: LoadedModel) -> None:
        super().__init__(loaded)
        self._pieces = tuple(loaded.vocabulary.pieces)

    @graph_function(input_signature=[named("text")])
    def serve_text(self, text: tf.Tensor) -> Tensors:
        """string [B] -> the pieces of each text, with probabilities and positions: pieces string,
        probabilities float32, starts, ends, byte_starts, byte_ends int32 [B, P], padded with "", 0
        and -1; num_pieces int32 [B].

        Ends are exclusive; a lone word mark has an empty span. Pieces beyond the longest sequence
        are left out.
        """
        characters = Characters(*same_rows(text=text))
        aligned = align_graph(self.text_encoder.tokenizer, characters)
        room = self.text_encoder.max_seq_length - 2  # [CLS] and [SEP] are added.
        ids, firsts, lasts = (each[:, :room] for each in aligned)
        logits = self.forward(self.text_encoder.pack(ids))["replaced_logits"]  # [B, S]
        rows = ids.value_rowids()
        places = tf.ragged.range(ids.row_lengths()).flat_values + 1  # After [CLS].
        at = tf.stack([rows, places], axis=1)
        starts, ends = characters.trimmed(rows, firsts.flat_values, lasts.flat_values)
        found = {
            "pieces": tf.gather(tf.constant(self._pieces), ids.flat_values),
            "probabilities": tf.sigmoid(tf.gather_nd(logits, at)),
            "starts": starts,
            "ends": ends,
            "byte_starts": characters.bytes_at(rows, starts),
            "byte_ends": characters.bytes_at(rows, ends),
        }
        fillers = {"pieces": "", "probabilities": 0.0}
        answer = {
            name: ids.with_values(value).to_tensor(
                default_value=fillers.get(name, -1), shape=[None, None]
            )
            for name, value in found.items()
        }
        return {**answer, "num_pieces": tf.cast(ids.row_lengths(), tf.int32)}

    @graph_function(input_signature=TOKENS)
    def serve_tokens(
        self, input_word_ids: tf.Tensor, input_mask: tf.Tensor, input_type_ids: tf.Tensor
    ) -> Tensors:
        """int32 [B, S] -> probabilities float32 [B, S], 0 at padding."""
        outputs = self.forward(self.token_inputs(input_word_ids, input_mask, input_type_ids))
        probabilities = tf.sigmoid(outputs["replaced_logits"])
        return {"probabilities": tf.where(input_mask > 0, probabilities, 0.0)}

    def signatures(self) -> Signatures:
        return {DEFAULT_SIGNATURE: self.serve_text, "tokens": self.serve_tokens}


def piece_spans(vocabulary: Tokenizer, text: str) -> list[tuple[int, int]]:
    """The character span of each piece, without surrounding white space, the end exclusive:
    "the cat" as "▁the", "▁cat" -> (0, 3), (4, 7)."""
    spans = []
    pieces = align(vocabulary, text)
    for first, last in zip(pieces.starts.tolist(), pieces.ends.tolist()):
        start, end = first, last + 1
        while start < len(text) and text[start].isspace():
            start += 1
        while end > 0 and text[end - 1].isspace():
            end -= 1
        spans.append((start, max(start, end)))
    return spans


def expected(loaded: LoadedModel) -> Expected:
    """The expected probabilities from Keras, with pieces and positions of the Python tokenizer."""
    vocabulary = loaded.vocabulary
    tokens = encode_batch(vocabulary, TEXTS, loaded.max_seq_length)
    logits = outputs_of(loaded.model, tokens)["replaced_logits"]
    every = np.where(tokens["input_mask"], tf.sigmoid(logits).numpy(), 0).astype(np.float32)
    sizes = tokens["input_mask"].sum(axis=1) - 2  # Without [CLS] and [SEP].
    is_piece = np.arange(sizes.max()) < sizes[:, None]
    ids = tokens["input_word_ids"][:, 1:-1]
    spans = [piece_spans(vocabulary, text)[:size] for text, size in zip(TEXTS, sizes)]
    texts = {
        "pieces": np.where(is_piece, text_array(vocabulary.pieces)[ids], b""),
        "probabilities": np.where(is_piece, every[:, 1:-1], 0).astype(np.float32),
        "num_pieces": sizes.astype(np.int32),
        **places(TEXTS, spans, sizes.max()),
    }
    return Expected({DEFAULT_SIGNATURE: texts, "tokens": {"probabilities": every}}, tokens)
