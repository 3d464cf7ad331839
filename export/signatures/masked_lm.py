"""Masked words: a text with "[MASK]" in it -> the most probable pieces for each mask.

Shapes: B batch, S sequence, P positions, M masks, K best pieces, V vocabulary.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from data_pipeline.tokenizers.base import Tokenizer
from export.encoding import encode_masked_batch
from export.finetuned import TIE, outputs_of
from export.graphs.checks import required, same_rows
from export.model_folder import LoadedModel
from export.probes import Expected, text_array
from export.signatures.common import (
    DEFAULT_SIGNATURE,
    TOKENS,
    ModelModule,
    Signatures,
    Tensors,
    graph_function,
    in_slices,
    named,
    tokens_spec,
)

TOP_K = 5
_BEST_PIECES = {
    "top_probabilities": tf.TensorSpec([None, None, None], tf.float32),
    "top_ids": tf.TensorSpec([None, None, None], tf.int32),
}
# Limits, because each position has V logits: the positions in a request to `tokens`, and the masks
# (including padding of rows) that are computed at a time.
MOST_POSITIONS, MASKS_AT_A_TIME = 1024, 512
MASKED_TEXTS = (
    "A function that [MASK] the largest of two [MASK].",
    "no mask at all",
    "[MASK]",
    "[MASK][MASK] returns a " + "very long list " * 150 + "[MASK]",
)


class MaskedLMModule(ModelModule):
    """Text with "[MASK]" in it -> the TOP_K most probable pieces for each mask."""

    def __init__(self, loaded: LoadedModel) -> None:
        super().__init__(loaded, read_masks=True)
        self._pieces = piece_names(loaded.vocabulary, loaded.model.config.vocab_size)
        self._top_k = min(TOP_K, len(self._pieces))

    @graph_function(input_signature=[named("text")])
    def serve_text(self, text: tf.Tensor) -> Tensors:
        """string [B] -> the K best pieces of each of up to M masks: top_pieces string, top_ids
        int32, top_probabilities float32 [B, M, K], best first; positions int32 [B, M] of the masks
        among the tokens; num_masks int32 [B].

        Rows with fewer than M masks are padded with "", -1, 0 and -1. Masks beyond the longest
        sequence are truncated and not counted.
        """
        inputs = self.text_encoder(*same_rows(text=text))
        positions = mask_positions(inputs["input_word_ids"], self.text_encoder.mask_id)
        real = positions >= 0  # [B, M]
        # Padding points at [CLS]; its answers are overwritten below.
        inputs["masked_lm_positions"] = tf.maximum(positions, 0)
        # Each mask needs V logits, so with many masks per row, fewer rows are computed at a time.
        rows = tf.maximum(MASKS_AT_A_TIME // tf.maximum(tf.shape(positions)[1], 1), 1)
        best = in_slices(self._best_pieces, inputs, _BEST_PIECES, rows)
        ids, real_ids = best["top_ids"], real[:, :, None]
        return {
            "top_pieces": tf.where(real_ids, tf.gather(tf.constant(self._pieces), ids), ""),
            "top_ids": tf.where(real_ids, ids, -1),
            "top_probabilities": tf.where(real_ids, best["top_probabilities"], 0.0),
            "positions": positions,
            "num_masks": tf.reduce_sum(tf.cast(real, tf.int32), axis=1),
        }

    def _best_pieces(self, inputs: Tensors) -> Tensors:
        """`top_probabilities` float32 and `top_ids` int32 [n, M, K] at `masked_lm_positions`."""
        logits = self.forward(inputs)["masked_lm_logits"]  # [n, M, V]
        probabilities, ids = tf.math.top_k(tf.nn.softmax(logits), self._top_k)
        return {"top_probabilities": probabilities, "top_ids": ids}

    @graph_function(input_signature=[*TOKENS, tokens_spec("masked_lm_positions")])
    def serve_tokens(
        self,
        input_word_ids: tf.Tensor,
        input_mask: tf.Tensor,
        input_type_ids: tf.Tensor,
        masked_lm_positions: tf.Tensor,
    ) -> Tensors:
        """Three int32 [B, S] and positions int32 [B, P], each from 0 to S - 1 -> masked_lm_logits
        float32 [B, P, V]; sentence_order_logits float32 [B, 2].
        """
        # A position beyond the end of its row would read from the next row.
        is_place = (masked_lm_positions >= 0) & (masked_lm_positions < tf.shape(input_word_ids)[1])
        has_rows = tf.shape(masked_lm_positions)[0] == tf.shape(input_word_ids)[0]
        few = required(
            masked_lm_positions,
            tf.size(masked_lm_positions) <= MOST_POSITIONS,
            f"masked_lm_positions must be at most {MOST_POSITIONS} in all: send fewer rows",
        )
        positions = required(
            few,
            tf.reduce_all(is_place) & has_rows,
            "masked_lm_positions must be from 0 to sequence length - 1, in as many rows as the ids",
        )
        inputs = self.token_inputs(input_word_ids, input_mask, input_type_ids)
        outputs = self.forward({**inputs, "masked_lm_positions": positions})
        return {name: outputs[name] for name in ("masked_lm_logits", "sentence_order_logits")}

    def signatures(self) -> Signatures:
        return {DEFAULT_SIGNATURE: self.serve_text, "tokens": self.serve_tokens}


def mask_positions(word_ids: tf.Tensor, mask_id: int) -> tf.Tensor:
    """int32 [B, S] -> int32 [B, M], positions of `mask_id` in each row, padded with -1.

    [[7, 4, 4], [4, 8, 9]], mask_id 4 -> [[1, 2], [0, -1]].
    """
    is_mask = word_ids == mask_id
    positions = tf.ragged.boolean_mask(
        tf.broadcast_to(tf.range(tf.shape(word_ids)[1]), tf.shape(word_ids)), is_mask
    )
    return positions.to_tensor(default_value=-1, shape=[None, None])


def expected(loaded: LoadedModel) -> Expected:
    """The expected answers, from Keras, to both signatures; pieces only if no scores are close."""
    vocabulary = loaded.vocabulary
    tokens = encode_masked_batch(vocabulary, MASKED_TEXTS, loaded.max_seq_length)
    positions = mask_positions(tf.constant(tokens["input_word_ids"]), vocabulary.mask_id).numpy()
    tokens["masked_lm_positions"] = np.maximum(positions, 0)
    outputs = outputs_of(loaded.model, tokens)
    logits = outputs["masked_lm_logits"]
    probabilities = tf.nn.softmax(logits).numpy()  # [B, M, V]
    ids = np.argsort(-probabilities, axis=-1)[..., : TOP_K + 1]  # One more, to detect near ties.
    best = np.take_along_axis(probabilities, ids, axis=-1)
    is_mask = positions >= 0
    text_answer = {
        "top_probabilities": np.where(is_mask[..., None], best[..., :TOP_K], 0.0),
        "positions": positions,
        "num_masks": is_mask.sum(axis=1),
    }
    if (-np.diff(best[is_mask]) > TIE).all():
        shown = ids[..., :TOP_K]
        pieces = text_array(piece_names(vocabulary, logits.shape[-1]))[shown]
        text_answer["top_ids"] = np.where(is_mask[..., None], shown, -1)
        text_answer["top_pieces"] = np.where(is_mask[..., None], pieces, b"")
    tokens_answer = {
        "masked_lm_logits": logits,
        "sentence_order_logits": outputs["sentence_order_logits"],
    }
    answers = {DEFAULT_SIGNATURE: text_answer, "tokens": tokens_answer}
    return Expected(answers, {"text": text_array(MASKED_TEXTS), **tokens})


def piece_names(vocabulary: Tokenizer, vocab_size: int) -> tuple[str, ...]:
    """The pieces by id; "" for ids beyond the vocabulary, with which a model may pad its embeddings
    to a divisible number."""
    return (*vocabulary.pieces, *[""] * (vocab_size - vocabulary.vocab_size))
