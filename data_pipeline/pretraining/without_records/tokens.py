"""Documents to ids in a TensorFlow graph: the `TokenizedDocuments` of ../tokenized.py, as tensors.

Needs tensorflow_text.
"""

from __future__ import annotations

import tensorflow as tf

from data_pipeline.pretraining.tokenized import TokenizedDocuments
from data_pipeline.tokenizers.base import Tokenizer
from data_pipeline.tokenizers.graph import GraphSentencePieceTokenizer, graph_tokenizer


class DocumentTokenizer:
    """A function from documents with a sentence on each line to their ids.

    Args:
      tokenizer: the tokenizer in Python; the graph gives the same ids.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = graph_tokenizer(tokenizer)
        # A resource made while a function is traced would belong to that function.
        self._tokenizer.tokenize(tf.constant(["a"]))
        self._is_word_start = tf.constant(tokenizer.is_word_start)

    def __call__(self, documents: tf.Tensor) -> TokenizedDocuments:
        """Ids of strings [D]; lines without ids are left out."""
        lines = tf.strings.split(documents, sep="\n")  # [D, (lines)]
        ids = self._ids(lines.values)  # [lines of all documents, (tokens)]
        lengths = ids.row_lengths()
        has_ids = lengths > 0
        kept_before = _boundaries(tf.cast(has_ids, tf.int64))
        return TokenizedDocuments(
            ids.values,
            _boundaries(tf.boolean_mask(lengths, has_ids)),
            tf.gather(kept_before, lines.row_splits),
            tf.gather(self._is_word_start, ids.values),
        )

    def _ids(self, lines: tf.Tensor) -> tf.RaggedTensor:
        if isinstance(self._tokenizer, GraphSentencePieceTokenizer):
            return self._tokenizer.tokenize_mostly_ascii(lines)
        return self._tokenizer.tokenize(lines)


def _boundaries(lengths: tf.Tensor) -> tf.Tensor:
    """int64 [R] -> int64 [R + 1]: [2, 3] -> [0, 2, 5]."""
    return tf.concat([[0], tf.cumsum(lengths)], axis=0)


def split_long_sentences(text: TokenizedDocuments, limit: int) -> TokenizedDocuments:
    """`tokenized.split_long_sentences` in a graph; the same documents with the same cuts.

    All sentences that are too long lose their beginnings side by side, until none is too long.
    """
    sizes = text.sentences[1:] - text.sentences[:-1]
    too_long = sizes > limit
    words = tf.concat([[-1], tf.where(text.starts_word)[:, 0]], axis=0)

    def cut(start: tf.Tensor, end: tf.Tensor, cuts: tf.Tensor) -> tuple[tf.Tensor, ...]:
        last = tf.searchsorted(words, start + limit, side="right") - 1
        word = tf.gather(words, last)  # The last one that starts at or before start + limit.
        start = tf.where(word > start, word, start + limit)
        rest = end - start > limit
        cuts = tf.concat([cuts, start], axis=0)
        return tf.boolean_mask(start, rest), tf.boolean_mask(end, rest), cuts

    some = tf.TensorShape([None])
    _, _, cuts = tf.while_loop(
        lambda start, end, cuts: tf.size(start) > 0,
        cut,
        (
            tf.boolean_mask(text.sentences[:-1], too_long),
            tf.boolean_mask(text.sentences[1:], too_long),
            tf.zeros([0], tf.int64),
        ),
        shape_invariants=(some, some, some),
    )
    sentences = tf.sort(tf.concat([text.sentences, cuts], axis=0))
    starts = tf.gather(text.sentences, text.documents)
    documents = tf.searchsorted(sentences, starts, out_type=tf.int64)
    return TokenizedDocuments(text.ids, sentences, documents, text.starts_word)
