"""Raw UTF-8 strings to encoder inputs inside a graph: tokenize, truncate, pack, pad to the longest.

Except for the tokenizer, only core TensorFlow ops are used: stock TF Serving 2.12 - 2.19 has no
RoundRobinTrim of TF Text. `export/encoding.py` does the same in Python, and tests compare the two.
Shapes: B batch, S sequence, M masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import tensorflow as tf

from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.sentencepiece import WORD_MARK

MASK_TEXT = "[MASK]"
_STARTS_WITH_SPACE = r"\s(?s:.*)"


class GraphTokenizer(Protocol):
    """A tokenizer in a graph, such as `data_pipeline.tokenizers.graph.graph_tokenizer` returns."""

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """string [B] -> int32 [B, (tokens)], without special pieces."""


class TextEncoder(tf.Module):
    """Encodes texts [B] as AlbertEncoder's three inputs, int32 [B, S], S the longest in the batch.

    Args:
      tokenizer: the tokenizer in the graph.
      vocabulary: the same tokenizer in Python, for the ids of special pieces.
      max_seq_length: longest sequence, special tokens included.
      read_masks: whether a literal "[MASK]" in a text becomes the mask's id, as masked language
        models need.
    """

    def __init__(
        self,
        tokenizer: GraphTokenizer,
        vocabulary: Tokenizer,
        max_seq_length: int,
        read_masks: bool = False,
    ) -> None:
        super().__init__(name="text_encoder")
        self.tokenizer = tokenizer
        self.max_seq_length = max_seq_length
        self._read_masks = read_masks
        self._cls_id, self._sep_id = vocabulary.cls_id, vocabulary.sep_id
        self.pad_id, self.mask_id = vocabulary.pad_id, vocabulary.mask_id
        pieces = vocabulary.pieces
        # The id of the piece that is only a word mark; -1 if the vocabulary has none.
        self._space_id = pieces.index(WORD_MARK) if WORD_MARK in pieces else -1
        # A tf.function, so that graphs store it once. It is wrapped in a plain function: otherwise
        # it would be saved even if no signature takes pairs.
        inputs_of_pairs = tf.function(self._encode_pairs, autograph=False, reduce_retracing=True)
        self._inputs_of_pairs = lambda first, second: inputs_of_pairs(first, second)

    # A tf.function, so that the graph of several signatures stores it only once.
    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """string [B] -> int32 [B, (tokens)], without special tokens except masks.

        If masks are read, the id of [MASK] joins the tokens of the texts around it:

            "a [MASK]." -> parts "a ", "." -> tokens [▁a], [▁ .] -> [▁a], [MASK .] -> [▁a MASK .]
        """
        if not self._read_masks:
            return self.tokenizer.tokenize(text)
        # The text is split because SentencePiece never produces control symbols from text. A part
        # that follows a mask without a space ("[MASK].") does not start a word: the lone word mark
        # that SentencePiece adds there is dropped.
        parts = tf.strings.split(text, sep=MASK_TEXT)  # [B, (parts)]
        tokens = self.tokenizer.tokenize(parts.flat_values)  # [all parts, (tokens)]
        is_later = tf.ragged.range(parts.row_lengths()).flat_values > 0  # [all parts]
        glued = is_later & ~tf.strings.regex_full_match(parts.flat_values, _STARTS_WITH_SPACE)
        first = tokens[:, :1].to_tensor(default_value=-1, shape=[None, 1])[:, 0]
        dropped = tf.cast(glued & (first == self._space_id), tf.int64)  # Number per part.
        tokens = keep(tokens, dropped, tokens.row_lengths())
        masks = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.math.count_nonzero(is_later)], self.mask_id),
            tf.cast(is_later, tf.int64),
            validate=False,
        )
        joined = tf.concat([masks, tokens], axis=1)  # [all parts, (tokens)]
        return parts.with_values(joined).merge_dims(1, 2)

    def pack(
        self, *segments: tf.RaggedTensor, max_seq_length: int | tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        """Segments int32 [B, (tokens)] -> the encoder's inputs, truncated to `max_seq_length`."""
        length = self.max_seq_length if max_seq_length is None else max_seq_length
        return pack_segments(segments, length, self._cls_id, self._sep_id, self.pad_id)

    def __call__(self, text: tf.Tensor, text_pair: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
        """string [B], once or twice -> input_word_ids, input_mask, input_type_ids int32 [B, S]."""
        if text_pair is not None:
            return self._inputs_of_pairs(text, text_pair)
        return self.pack(self.tokenize(text))

    def _encode_pairs(self, first: tf.Tensor, second: tf.Tensor) -> dict[str, tf.Tensor]:
        """string [B] twice -> the encoder's inputs, int32 [B, S]."""
        return self.pack(self.tokenize(first), self.tokenize(second))


def pack_segments(
    segments: Sequence[tf.RaggedTensor],
    max_seq_length: int | tf.Tensor,
    cls_id: int,
    sep_id: int,
    pad_id: int,
) -> dict[str, tf.Tensor]:
    """`[CLS] A [SEP] B [SEP] C [SEP] ...`: the longest segments are truncated until all fit, and
    rows are padded to the longest one. Empty segments after the first get no [SEP]. All segments
    after the first have type 1, as ALBERT has only two types.

    Tokens int32 [B, (tokens)] -> input_word_ids, input_mask, input_type_ids int32 [B, S].
    """
    lengths = tf.stack([segment.row_lengths() for segment in segments], axis=1)  # [B, N]
    later = tf.cast(lengths[:, 1:] > 0, tf.int64)
    has_sep = tf.concat([tf.ones_like(lengths[:, :1]), later], axis=1)  # [B, N]
    room = tf.cast(max_seq_length, tf.int64) - 1 - tf.reduce_sum(has_sep, axis=1)
    kept = fair_lengths(lengths, room)
    parts = [tf.fill([tf.cast(segments[0].nrows(), tf.int32), 1], cls_id)]
    for number, segment in enumerate(segments):
        seps = has_sep[:, number]
        sep = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.reduce_sum(seps)], sep_id), seps, validate=False
        )
        parts += [keep(segment, 0, kept[:, number]), sep]
    return _pad(tf.concat(parts, axis=1), kept[:, 0] + 2, pad_id)


def fair_lengths(lengths: tf.Tensor, room: tf.Tensor) -> tf.Tensor:
    """The lengths int64 [B, N] of N segments truncated to `room` (int64 [B]) tokens in total.

    The longest segment loses tokens, among equals the last: lengths 10, 4, 1, room 8 -> 4, 3, 1.
    """
    count = lengths.shape[1]
    limit = room // count  # Per segment; room that shorter ones leave is given to the others.
    for _ in range(count - 1):
        is_short = lengths <= limit[:, None]
        rest = room - tf.reduce_sum(tf.where(is_short, lengths, 0), axis=1)
        longer = tf.reduce_sum(tf.cast(~is_short, tf.int64), axis=1)
        limit = tf.where(longer > 0, rest // tf.maximum(longer, 1), limit)
    kept = tf.minimum(lengths, limit[:, None])
    is_cut = lengths > limit[:, None]
    spare = (room - tf.reduce_sum(kept, axis=1))[:, None]  # Less than the number of cut segments.
    number = tf.cumsum(tf.cast(is_cut, tf.int64), axis=1)
    return kept + tf.cast(is_cut & (number <= spare), tf.int64)


def keep(tokens: tf.RaggedTensor, start: tf.Tensor | int, end: tf.Tensor) -> tf.RaggedTensor:
    """Tokens from start (inclusive) to end (exclusive) of each row; start may be one number."""
    rows = tokens.value_rowids()
    position = tf.range(tf.size(rows, out_type=tf.int64)) - tf.gather(tokens.row_starts(), rows)
    start = tf.broadcast_to(tf.cast(start, tf.int64), tf.shape(end))
    kept = (position >= tf.gather(start, rows)) & (position < tf.gather(end, rows))
    values = tf.boolean_mask(tokens.flat_values, kept)
    return tf.RaggedTensor.from_row_lengths(values, tf.maximum(end - start, 0), validate=False)


def _pad(packed: tf.RaggedTensor, first_lengths: tf.Tensor, pad_id: int) -> dict[str, tf.Tensor]:
    """Rows of ids -> int32 [B, S]; type 1 from `first_lengths` (int64 [B]) on, except padding."""
    word_ids = packed.to_tensor(default_value=pad_id, shape=[None, None])  # [B, S]
    longest = tf.shape(word_ids)[1]
    mask = tf.sequence_mask(packed.row_lengths(), longest, dtype=tf.int32)
    return {
        "input_word_ids": word_ids,
        "input_mask": mask,
        "input_type_ids": mask - tf.sequence_mask(first_lengths, longest, dtype=tf.int32),
    }
