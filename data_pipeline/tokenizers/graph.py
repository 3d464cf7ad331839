"""Tokenizers in TensorFlow graphs, for SavedModels that take text; they need tensorflow_text.

Each gives the same ids as its twin in Python, with ops that every stock TF Serving has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.normalization import (
    REPLACEMENT,
    UNSTABLE_RANGES,
    combining_ranges,
    whitespace_ranges,
)
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer
from data_pipeline.tokenizers.wordpiece import (
    CONTINUATION,
    IDEOGRAPHS,
    MAX_WORD_CHARACTERS,
    WordPieceTokenizer,
    accent_ranges,
    dropped_ranges,
    punctuation_ranges,
    space_ranges,
)


def graph_class(ranges: Sequence[tuple[int, int]]) -> str:
    """A character class in RE2's syntax."""
    return "[" + "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in ranges) + "]"


def normalize_graph(text: tf.Tensor, lower: bool = True, join_quotes: bool = False) -> tf.Tensor:
    """`normalization.normalize` in a TensorFlow graph.

    Args:
      text: UTF-8 strings of any shape; bytes that are not UTF-8 become U+FFFD.
      lower, join_quotes: see `normalize`.

    Returns:
      UTF-8 strings of the same shape, equal to `normalize`.
    """
    from tensorflow_text import normalize_utf8

    whitespace = graph_class(whitespace_ranges())
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
    text = tf.strings.regex_replace(text, graph_class(UNSTABLE_RANGES), REPLACEMENT)
    text = tf.strings.regex_replace(text, whitespace + "+", " ")
    text = tf.strings.regex_replace(text, "^ | $", "")
    if join_quotes:
        text = tf.strings.regex_replace(text, "``|''", '"')
    text = normalize_utf8(text, "NFKD")
    text = tf.strings.regex_replace(text, graph_class(combining_ranges()) + "+", "")
    return tf.strings.lower(text, encoding="utf-8") if lower else text


def normalize_mostly_ascii(
    text: tf.Tensor, lower: bool = True, join_quotes: bool = False
) -> tf.Tensor:
    """`normalize_graph` of strings [B], three times as fast where most are ASCII.

    Of all that is done to text, ASCII needs only the whitespace collapsed and letters lowered. So
    ASCII strings and others are parted, and stitched together again in their order.
    """
    is_ascii = tf.strings.regex_full_match(text, r"[\x01-\x7f]*")  # NUL is replaced.
    other, plain = tf.dynamic_partition(text, tf.cast(is_ascii, tf.int32), 2)
    places = tf.dynamic_partition(tf.range(tf.size(text)), tf.cast(is_ascii, tf.int32), 2)
    # Single spaces are no match: replacing each of them would take most of the time.
    plain = tf.strings.regex_replace(plain, r"[\t-\r\x1c- ]{2,}|[\t-\r\x1c-\x1f]", " ")
    plain = tf.strings.strip(plain)
    if join_quotes:
        plain = tf.strings.regex_replace(plain, "``|''", '"')
    if lower:
        plain = tf.strings.lower(plain)
    return tf.dynamic_stitch(places, [normalize_graph(other, lower, join_quotes), plain])


def _lasting_processor(model: bytes, fingerprint: str):
    """TF Text's tokenizer with a resource that lives as long as the process.

    TF Text's own resource belongs to an op kernel, and tf.random.set_seed clears the kernels: every
    later call fails with "Resource ... does not exist". A shared name keeps it.
    """
    from tensorflow_text.python.ops import sentencepiece_tokenizer as tf_text

    class SharedModel(tf.saved_model.experimental.TrackableResource):
        def _create_resource(self):
            return tf_text.gen_sentencepiece_tokenizer.sentencepiece_op(
                model=model, shared_name=f"sentencepiece_{fingerprint}"
            )

    processor = tf_text.SentencepieceTokenizer(model=model, out_type=tf.int32)
    processor._model_resource = SharedModel()
    return processor


class GraphSentencePieceTokenizer(tf.Module):
    """SentencePiece in graphs, for SavedModels that take text; needs tensorflow_text.

    Keep it as an attribute of the module that is saved: it tracks SentencePiece's resource and the
    vocabulary file as an asset.
    """

    def __init__(self, python_face: SentencePieceTokenizer) -> None:
        super().__init__(name="tokenizer")
        self.vocabulary = tf.saved_model.Asset(python_face.vocab_file)
        self._settings = python_face.settings
        self._processor = _lasting_processor(python_face.content(), python_face.fingerprint)
        self._resplits = bool(python_face.resplit)
        new_ids = [python_face.resplit.get(i, [i]) for i in range(python_face.vocab_size)]
        self._new_ids = np.concatenate(new_ids).astype(np.int32)
        self._new_id_splits = np.cumsum([0] + [len(ids) for ids in new_ids]).astype(np.int64)

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Ids of strings [B] as an int32 RaggedTensor [B, (tokens)], without special pieces."""
        settings = self._settings
        text = normalize_graph(text, settings.lower, settings.rules == "huggingface")
        return self._tokenize_normalized(text)

    def tokenize_mostly_ascii(self, text: tf.Tensor) -> tf.RaggedTensor:
        """`tokenize`, faster where most strings are ASCII, with ops that exports must not have."""
        settings = self._settings
        text = normalize_mostly_ascii(text, settings.lower, settings.rules == "huggingface")
        return self._tokenize_normalized(text)

    def _tokenize_normalized(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Ids of normalized strings [B]; the pieces of "2010," are looked up in a ragged table."""
        ids = self._processor.tokenize(text)
        if not self._resplits:
            return ids
        table = tf.RaggedTensor.from_row_splits(self._new_ids, self._new_id_splits, validate=False)
        new_ids = tf.gather(table, ids.values)  # [tokens of all rows, (new ids)]
        row_splits = tf.gather(new_ids.row_splits, ids.row_splits)  # [B + 1]
        return tf.RaggedTensor.from_row_splits(new_ids.values, row_splits, validate=False)


def split_words_graph(text: tf.Tensor, lower: bool = True) -> tf.RaggedTensor:
    """`wordpiece.split_words` in a TensorFlow graph.

    Args:
      text: UTF-8 strings [B]; bytes that are not UTF-8 are dropped.
      lower: lower-case the text and drop accents.

    Returns:
      Strings [B, (words)].
    """
    from tensorflow_text import normalize_utf8

    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
    text = tf.strings.regex_replace(text, graph_class(dropped_ranges()), "")
    text = tf.strings.regex_replace(text, graph_class(space_ranges()), " ")
    text = tf.strings.regex_replace(text, f"({graph_class(IDEOGRAPHS)})", r" \1 ")
    if lower:
        text = normalize_utf8(tf.strings.lower(text, encoding="utf-8"), "NFD")
        text = tf.strings.regex_replace(text, graph_class(accent_ranges()), "")
    text = tf.strings.regex_replace(text, f"({graph_class(punctuation_ranges())})", r" \1 ")
    return tf.strings.split(text)


class GraphWordPieceTokenizer(tf.Module):
    """WordPiece in graphs, for SavedModels that take text; needs tensorflow_text.

    Keep it as an attribute of the module that is saved: it tracks the table of pieces and the
    vocabulary file as an asset.
    """

    def __init__(self, python_face: WordPieceTokenizer) -> None:
        from tensorflow_text import WordpieceTokenizer

        super().__init__(name="tokenizer")
        self.vocabulary = tf.saved_model.Asset(python_face.vocab_file)
        self._lower = python_face.lower
        self._unknown = python_face.pieces[python_face.unk_id]
        pieces, ids = list(python_face.ids), list(python_face.ids.values())
        initializer = tf.lookup.KeyValueTensorInitializer(
            tf.constant(pieces), tf.constant(ids, tf.int64)
        )
        self._table = tf.lookup.StaticHashTable(initializer, default_value=-1)
        self._splitter = WordpieceTokenizer(
            self._table,
            suffix_indicator=CONTINUATION,
            max_bytes_per_word=4 * MAX_WORD_CHARACTERS,
            unknown_token=self._unknown,
            token_out_type=tf.int64,
        )

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Ids of strings [B] as an int32 RaggedTensor [B, (tokens)], without special pieces."""
        words = split_words_graph(text, self._lower)
        too_long = tf.strings.length(words.values, unit="UTF8_CHAR") > MAX_WORD_CHARACTERS
        words = words.with_values(tf.where(too_long, self._unknown, words.values))
        ids = self._splitter.tokenize(words).merge_dims(1, 2)  # [B, (words), (tokens)] -> flat
        return tf.cast(ids, tf.int32)


def graph_tokenizer(
    python_face: Tokenizer,
) -> GraphSentencePieceTokenizer | GraphWordPieceTokenizer:
    """The tokenizer in graphs that gives the same ids as one in Python."""
    if isinstance(python_face, WordPieceTokenizer):
        return GraphWordPieceTokenizer(python_face)
    if isinstance(python_face, SentencePieceTokenizer):
        return GraphSentencePieceTokenizer(python_face)
    raise TypeError(
        "expected a SentencePieceTokenizer or a WordPieceTokenizer, received "
        f"{type(python_face).__name__}"
    )
