"""Tokenizers in TensorFlow graphs, for SavedModels that take text; they need tensorflow_text.

Each gives the same ids as the tokenizer in Python, and uses only ops of stock TF Serving.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.normalization import (
    REPLACEMENT,
    UNSTABLE_RANGES,
    Ranges,
    combining_ranges,
    whitespace_ranges,
)
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer
from data_pipeline.tokenizers.wordpiece import (
    CONTINUATION,
    IDEOGRAPHS,
    WordPieceTokenizer,
    accent_ranges,
    dropped_ranges,
    punctuation_ranges,
    space_ranges,
)


def graph_class(ranges: Ranges) -> str:
    """A character class in RE2's syntax."""
    return "[" + "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in ranges) + "]"


def normalize_graph(
    text: tf.Tensor, lower: bool = True, join_quotes: bool = False, strip_accents: bool = True
) -> tf.Tensor:
    """`normalization.normalize` in a TensorFlow graph, for UTF-8 strings of any shape.

    Bytes that are not UTF-8 become U+FFFD.
    """
    from tensorflow_text import normalize_utf8

    whitespace = graph_class(whitespace_ranges())
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
    text = tf.strings.regex_replace(text, graph_class(UNSTABLE_RANGES), REPLACEMENT)
    text = tf.strings.regex_replace(text, whitespace + "+", " ")
    text = tf.strings.regex_replace(text, "^ | $", "")
    if join_quotes:
        text = tf.strings.regex_replace(text, "``|''", '"')
    if strip_accents:
        text = normalize_utf8(text, "NFKD")
        # A class of code points, since \p{Mn} also matches marks of combining class 0.
        text = tf.strings.regex_replace(text, graph_class(combining_ranges()) + "+", "")
    return tf.strings.lower(text, encoding="utf-8") if lower else text


def _lasting_processor(model: bytes, fingerprint: str):
    """TF Text's tokenizer, with a resource that exists until the process ends."""
    from tensorflow_text.python.ops import sentencepiece_tokenizer as tf_text

    # TF Text's own resource belongs to an op kernel. tf.random.set_seed clears the kernels, and
    # later calls fail with "Resource ... does not exist". A shared name keeps the resource.
    def make() -> tf.Tensor:
        return tf_text.gen_sentencepiece_tokenizer.sentencepiece_op(
            model=model, shared_name=f"sentencepiece_{fingerprint}"
        )

    # One traced function, called wherever the resource is created: its node holds the whole model,
    # and a SavedModel would otherwise store a copy for each call.
    with tf.init_scope():
        create = tf.function(make, autograph=False).get_concrete_function()

    class SharedModel(tf.saved_model.experimental.TrackableResource):
        def _create_resource(self):
            return create()

    processor = tf_text.SentencepieceTokenizer(model=model, out_type=tf.int32)
    processor._model_resource = SharedModel()
    with tf.init_scope():  # Not in the tf.function that happens to use it first.
        _ = processor._model_resource.resource_handle
    return processor


class PieceParts(NamedTuple):
    """Parts of pieces after the digit-comma rule: "▁20", "10" and "," for the piece "▁2010,".

    Attributes:
      ids: int32 [Q], ids of the parts; a piece that is not split is its only part.
      piece: int32 [Q], the number of the piece that contains each part.
      ends: int32 [P], the number of parts up to the end of each piece.
      offset: int32 [Q], number of characters before the part in its piece.
      size: int32 [Q], number of characters of the part.
      first_size, total: int32 [Q], characters in the first part, and in all parts, of its piece.
    """

    ids: tf.Tensor
    piece: tf.Tensor
    ends: tf.Tensor
    offset: tf.Tensor
    size: tf.Tensor
    first_size: tf.Tensor
    total: tf.Tensor


class GraphSentencePieceTokenizer(tf.Module):
    """SentencePiece in graphs, for SavedModels that take text; needs tensorflow_text.

    Keep it as an attribute of the saved module: it tracks SentencePiece's resource and the
    vocabulary file, an asset.
    """

    def __init__(self, tokenizer: SentencePieceTokenizer) -> None:
        super().__init__(name="tokenizer")
        self.vocabulary = tf.saved_model.Asset(tokenizer.vocab_file)
        self.settings = tokenizer.settings
        self._processor = _lasting_processor(tokenizer.content(), tokenizer.fingerprint)
        self._split_ids = np.array(sorted(tokenizer.resplit), np.int32)
        parts = [tokenizer.resplit[i] for i in self._split_ids]
        self._part_ids = np.array([i for each in parts for i in each], np.int32)
        self._part_counts = np.array([len(each) for each in parts], np.int32)
        self._part_sizes = np.array([len(tokenizer.pieces[i]) for i in self._part_ids], np.int32)

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Ids of strings [B] as an int32 RaggedTensor [B, (tokens)], without special pieces."""
        ids = self._processor.tokenize(self.normalize(text))
        if not len(self._split_ids):
            return ids
        parts = self.split_again(ids.flat_values)
        row_splits = tf.gather(tf.concat([[0], parts.ends], axis=0), ids.row_splits)
        row_splits = tf.cast(row_splits, tf.int64)  # [B + 1]
        return tf.RaggedTensor.from_row_splits(parts.ids, row_splits, validate=False)

    def normalize(self, text: tf.Tensor) -> tf.Tensor:
        """`normalize_graph` with this tokenizer's settings."""
        return normalize_graph(text, *self.settings.cleaning)

    def pieces_with_offsets(
        self, text: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """The pieces of normalized strings [B], not split again, with places in bytes.

        Returns ids int32 [B, (pieces)]; and, flat for all B texts, the pieces as strings (unknown
        ones as written), and the places of their first bytes and after their last bytes, int32.
        """
        from tensorflow_text.python.ops import sentencepiece_tokenizer as tf_text

        ids = self._processor.tokenize(text)
        strings, _, starts, limits = (
            tf_text.gen_sentencepiece_tokenizer.sentencepiece_tokenize_with_offsets_op(
                self._processor._model_resource.resource_handle,
                text,
                nbest_size=0,
                alpha=1.0,
                add_bos=False,
                add_eos=False,
                reverse=False,
                out_type=tf.string,
                return_nbest=False,
            )
        )
        return ids, strings, tf.cast(starts, tf.int32), tf.cast(limits, tf.int32)

    def split_again(self, ids: tf.Tensor) -> PieceParts:
        """Applies the digit-comma rule to pieces, int32 [P]; most pieces are unchanged."""
        pieces = tf.range(tf.size(ids))
        if not len(self._split_ids):
            zeros, ones = tf.zeros_like(ids), tf.ones_like(ids)
            return PieceParts(ids, pieces, pieces + 1, zeros, ones, ones, ones)
        size = len(self._split_ids)
        found = tf.minimum(tf.searchsorted(tf.constant(self._split_ids), ids), size - 1)
        is_split = tf.gather(tf.constant(self._split_ids), found) == ids
        counts = tf.where(is_split, tf.gather(tf.constant(self._part_counts), found), 1)
        ends = tf.cumsum(counts)
        piece = tf.repeat(pieces, counts)  # [parts]
        index = tf.range(tf.size(piece)) - tf.gather(ends - counts, piece)
        begins = np.cumsum(self._part_counts) - self._part_counts
        before = np.cumsum(self._part_sizes) - self._part_sizes
        totals = np.add.reduceat(self._part_sizes, begins)
        entry, splits = tf.gather(found, piece), tf.gather(is_split, piece)
        at = tf.gather(tf.constant(begins.astype(np.int32)), entry)
        offsets = (before - np.repeat(before[begins], self._part_counts)).astype(np.int32)

        def of_part(table: np.ndarray, places: tf.Tensor, other: tf.Tensor | int) -> tf.Tensor:
            last = len(table) - 1
            value = tf.gather(tf.constant(table.astype(np.int32)), tf.minimum(places, last))
            return tf.where(splits, value, other)

        return PieceParts(
            of_part(self._part_ids, at + index, tf.gather(ids, piece)),
            piece,
            ends,
            of_part(offsets, at + index, 0),
            of_part(self._part_sizes, at + index, 1),
            of_part(self._part_sizes, at, 1),
            of_part(totals, entry, 1),
        )


def split_words_graph(
    text: tf.Tensor,
    lower: bool = True,
    strip_accents: bool | None = None,
    space_chinese: bool = True,
) -> tf.RaggedTensor:
    """`wordpiece.split_words` in a TensorFlow graph: UTF-8 strings [B] -> strings [B, (words)].

    Bytes that are not UTF-8 are dropped.
    """
    from tensorflow_text import normalize_utf8

    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
    text = tf.strings.regex_replace(text, graph_class(dropped_ranges()), "")
    text = tf.strings.regex_replace(text, graph_class(space_ranges()), " ")
    if space_chinese:
        text = tf.strings.regex_replace(text, f"({graph_class(IDEOGRAPHS)})", r" \1 ")
    if lower:
        text = tf.strings.lower(text, encoding="utf-8")
    if lower if strip_accents is None else strip_accents:
        text = normalize_utf8(text, "NFD")
        text = tf.strings.regex_replace(text, graph_class(accent_ranges()), "")
    text = tf.strings.regex_replace(text, f"({graph_class(punctuation_ranges())})", r" \1 ")
    return tf.strings.split(text)


class GraphWordPieceTokenizer(tf.Module):
    """WordPiece in graphs, for SavedModels that take text; needs tensorflow_text.

    Keep it as an attribute of the saved module: it tracks the table of pieces and the vocabulary
    file, an asset.
    """

    def __init__(self, tokenizer: WordPieceTokenizer) -> None:
        from tensorflow_text import WordpieceTokenizer

        super().__init__(name="tokenizer")
        self.vocabulary = tf.saved_model.Asset(tokenizer.vocab_file)
        self.settings = tokenizer.settings
        self._max_word_characters = tokenizer.max_word_characters
        self.unknown_id = tokenizer.unk_id
        # The mark "##" of a piece inside a word does not count as characters.
        self.piece_sizes = np.array(
            [len(piece.removeprefix(CONTINUATION)) for piece in tokenizer.pieces], np.int32
        )
        self._unknown = tokenizer.pieces[tokenizer.unk_id]
        pieces, ids = list(tokenizer.ids), list(tokenizer.ids.values())
        initializer = tf.lookup.KeyValueTensorInitializer(
            tf.constant(pieces), tf.constant(ids, tf.int64)
        )
        self._table = tf.lookup.StaticHashTable(initializer, default_value=-1)
        self._splitter = WordpieceTokenizer(
            self._table,
            suffix_indicator=CONTINUATION,
            max_bytes_per_word=4 * self._max_word_characters,
            unknown_token=self._unknown,
            token_out_type=tf.int64,
        )

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Ids of strings [B] as an int32 RaggedTensor [B, (tokens)], without special pieces."""
        words, ids = self.pieces_of_words(text)
        return words.with_values(ids).merge_dims(1, 2)  # [B, (words), (tokens)] -> flat

    def split_words(self, text: tf.Tensor) -> tf.RaggedTensor:
        """`split_words_graph` with this tokenizer's settings."""
        settings = self.settings
        return split_words_graph(
            text, settings.lower, settings.strip_accents, bool(settings.space_chinese)
        )

    def pieces_of_words(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """The words of strings [B] as strings [B, (words)], and the ids of their pieces: int32 [W,
        (pieces)] for the W words of all texts.
        """
        words = self.split_words(text)
        lengths = tf.strings.length(words.values, unit="UTF8_CHAR")
        too_long = lengths > self._max_word_characters
        known = tf.where(too_long, self._unknown, words.values)
        return words, tf.cast(self._splitter.tokenize(known), tf.int32)


def graph_tokenizer(tokenizer: Tokenizer) -> GraphSentencePieceTokenizer | GraphWordPieceTokenizer:
    """The graph tokenizer that gives the same ids as a tokenizer in Python."""
    if isinstance(tokenizer, WordPieceTokenizer):
        return GraphWordPieceTokenizer(tokenizer)
    assert isinstance(tokenizer, SentencePieceTokenizer)
    return GraphSentencePieceTokenizer(tokenizer)
