"""Pieces in a graph, each with the span of the original text that it was made from.

The equivalent of `data_pipeline.finetuning.alignment` in TensorFlow. The texts of a batch are
concatenated in flat tensors, as in graph_characters.py.
Shapes: B batch, N characters of all texts, P pieces of all texts.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import NamedTuple

import tensorflow as tf

from data_pipeline.tokenizers.graph import (
    GraphSentencePieceTokenizer,
    GraphWordPieceTokenizer,
    PieceParts,
    normalize_graph,
)
from data_pipeline.tokenizers.graph_characters import FAR, Characters, first_of_run, is_in
from data_pipeline.tokenizers.normalization import Ranges, ranges_where
from data_pipeline.tokenizers.sentencepiece import WORD_MARK
from data_pipeline.tokenizers.text_graph import GraphTokenizer

_SPACE, _BACKTICK, _APOSTROPHE = map(ord, " `'")
_MOST_CODES = 1 << 21  # More than the number of code points in Unicode.


class AlignedBatch(NamedTuple):
    """The pieces of B texts with their places, as in `AlignedPieces`.

    Attributes:
      ids: int32 [B, (pieces)].
      starts: int32 [B, (pieces)], place of the first character of each piece.
      ends: int32 [B, (pieces)], place of its last character; a lone word mark that stands for no
        character has an end before its start.
    """

    ids: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


@functools.cache
def invisible_ranges() -> Ranges:
    """Control and format characters."""
    return ranges_where(lambda each: unicodedata.category(each) in ("Cc", "Cf"))


class _Traced(NamedTuple):
    """Derived texts, flat, with the original places from which each character was made.

    Attributes:
      firsts, lasts: int32 [N'], first and last place in the original text.
      begins: int32 [B], index of the first character of each derived text.
      lengths: int32 [B], number of characters of each derived text.
    """

    firsts: tf.Tensor
    lasts: tf.Tensor
    begins: tf.Tensor
    lengths: tf.Tensor

    def first_at(self, rows: tf.Tensor, places: tf.Tensor, characters: Characters) -> tf.Tensor:
        """Original places of places [P]; the end of the derived text maps to the original's end."""
        at = tf.minimum(tf.gather(self.begins, rows) + places, tf.size(self.firsts))
        found = tf.gather(tf.concat([self.firsts, [0]], axis=0), at)
        beyond = places >= tf.gather(self.lengths, rows)
        return tf.where(beyond, tf.gather(characters.lengths, rows), found)

    def last_before(self, rows: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """The original place of the character before places [P]; -1 before the first."""
        at = tf.gather(self.begins, rows) + places
        found = tf.gather(tf.concat([[-1], self.lasts], axis=0), at)
        return tf.where(places == 0, -1, found)


def _repeated(
    characters: Characters, firsts: tf.Tensor, lasts: tf.Tensor, sizes: tf.Tensor
) -> _Traced:
    """Derived texts in which each character became `sizes` characters."""
    lengths = tf.math.unsorted_segment_sum(sizes, characters.rows, tf.size(characters.lengths))
    begins = tf.cumsum(lengths, exclusive=True)
    return _Traced(tf.repeat(firsts, sizes), tf.repeat(lasts, sizes), begins, lengths)


def _trace_normalization(
    characters: Characters, lower: bool, join_quotes: bool, strip_accents: bool
) -> _Traced:
    """The places of characters after `normalize_graph`."""
    places, is_space = characters.places, characters.is_space
    sizes = characters.sizes(
        lambda strings: tf.strings.length(
            normalize_graph(strings, lower, strip_accents=strip_accents), unit="UTF8_CHAR"
        )
    )
    space_firsts, space_lasts = characters.space_places()
    firsts = tf.where(is_space, space_firsts, places)
    lasts = tf.where(is_space, space_lasts, places)
    # Whitespace at either end of the text is dropped; a run inside becomes one space.
    ends = tf.gather(characters.lengths, characters.rows) - 1
    inside = (characters.run_firsts > 0) & (characters.run_lasts < ends)
    one = tf.cast(characters.run_starts & inside, tf.int32)
    sizes = tf.where(is_space, one, sizes)
    if join_quotes:
        first, second = _quote_pairs(characters)
        lasts = tf.where(first, places + 1, lasts)
        sizes = tf.where(second, 0, sizes)
    return _repeated(characters, firsts, lasts, sizes)


def _quote_pairs(characters: Characters) -> tuple[tf.Tensor, tf.Tensor]:
    """Masks of the characters that are the first and the second of `` or '': bool [N] each."""
    codes = characters.codes
    is_quote = (codes == _BACKTICK) | (codes == _APOSTROPHE)
    before = tf.concat([[-1], codes[:-1]], axis=0)[: tf.size(codes)]
    goes_on = (codes == before) & (characters.places > 0)
    begins = first_of_run(is_quote, goes_on)
    at = tf.boolean_mask(characters.places, begins)
    run = tf.cumsum(tf.cast(begins, tf.int32))  # Counted from 1; 0 is before the first quote.
    index = characters.places - tf.gather(tf.concat([[0], at], axis=0), run)
    second = is_quote & goes_on & (index % 2 == 1)
    first = tf.concat([second[1:], [False]], axis=0)[: tf.size(codes)]
    return first, second


def align_graph(tokenizer: GraphTokenizer, characters: Characters) -> AlignedBatch:
    """The pieces of texts, with the place of each in its text; needs tensorflow_text.

    The tokenizer comes from `graph_tokenizer`; the saved module has to keep it.
    """
    if isinstance(tokenizer, GraphWordPieceTokenizer):
        return _align_wordpiece(tokenizer, characters)
    assert isinstance(tokenizer, GraphSentencePieceTokenizer)
    return _align_sentencepiece(tokenizer, characters)


def _align_sentencepiece(
    tokenizer: GraphSentencePieceTokenizer, characters: Characters
) -> AlignedBatch:
    traced = _trace_normalization(characters, *tokenizer.settings.cleaning)
    normalized = tokenizer.normalize(characters.text)
    ids, strings, byte_starts, byte_limits = tokenizer.pieces_with_offsets(normalized)
    rows = ids.value_rowids()
    inner = _Normalized(normalized)
    begins, limits = inner.places(rows, byte_starts), inner.places(rows, byte_limits)
    kept = inner.visible(rows, begins, limits, strings)  # [P, (places)]
    parts = tokenizer.split_again(ids.flat_values)
    first, last = _part_places(parts, kept, limits)
    part_rows = tf.gather(rows, parts.piece)
    starts = traced.first_at(part_rows, first, characters)
    ends = traced.last_before(part_rows, last)
    lengths = tf.math.unsorted_segment_sum(
        tf.ones_like(part_rows), part_rows, tf.cast(ids.nrows(), tf.int32)
    )
    found = [
        tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
        for values in (parts.ids, starts, ends)
    ]
    is_first = tf.ragged.range(found[0].row_lengths()).flat_values == 0
    return AlignedBatch(found[0], found[1].with_values(tf.where(is_first, 0, starts)), found[2])


class _Normalized:
    """The characters of normalized texts; converts SentencePiece's byte offsets to places."""

    def __init__(self, text: tf.Tensor) -> None:
        codes, byte_starts = tf.strings.unicode_decode_with_offsets(text, "UTF-8")
        self._codes = tf.concat([codes.flat_values, [0]], axis=0)  # Padded for gather.
        self._begins = tf.cast(codes.row_starts(), tf.int32)
        # Byte offsets of all texts in one ascending sequence, with one unused byte between texts.
        self._bases = tf.cumsum(tf.strings.length(text) + 1, exclusive=True)
        bases = tf.gather(self._bases, codes.value_rowids())
        self._bytes = bases + tf.cast(byte_starts.flat_values, tf.int32)

    def places(self, rows: tf.Tensor, in_bytes: tf.Tensor) -> tf.Tensor:
        """Converts the byte offsets of characters to their places, int32 [P]."""
        at = tf.searchsorted(self._bytes, tf.gather(self._bases, rows) + in_bytes, side="left")
        return at - tf.gather(self._begins, rows)

    def visible(
        self, rows: tf.Tensor, begins: tf.Tensor, limits: tf.Tensor, strings: tf.Tensor
    ) -> tf.RaggedTensor:
        """Places of each piece without characters that SentencePiece dropped, int32 [P, (places)].

        Control and format characters are removed, unless the piece contains them, consists of
        nothing else, or begins with a word mark made from them; see `alignment._places_of`.
        """
        places = tf.ragged.range(begins, limits)  # [P, (places)]
        pieces = places.value_rowids()
        at = tf.gather(tf.gather(self._begins, rows), pieces) + places.flat_values
        codes = tf.gather(self._codes, at)
        doubtful = tf.where(is_in(codes, invisible_ranges()))[:, 0]
        touched, numbers = tf.unique(tf.gather(pieces, doubtful), tf.int64)
        inside = tf.strings.unicode_decode(tf.gather(strings, touched), "UTF-8")
        # Each pair of piece and character is one number: a piece may have thousands of characters.
        held = tf.sort(_in_piece(inside.value_rowids(), inside.flat_values))
        wanted = _in_piece(numbers, tf.gather(codes, doubtful))
        found = tf.gather(tf.concat([held, [-1]], axis=0), tf.searchsorted(held, wanted))
        dropped = tf.boolean_mask(doubtful, found != wanted)
        gone = tf.scatter_nd(
            dropped[:, None], tf.ones_like(dropped, tf.int32), tf.shape(codes, tf.int64)
        )
        kept = gone == 0
        first = tf.math.unsorted_segment_min(
            tf.where(kept, tf.range(tf.size(codes)), FAR), pieces, tf.size(strings)
        )  # [P], index among all places; FAR: none is left.
        padded = tf.concat([codes, [0]], axis=0)
        first_code = tf.gather(padded, tf.minimum(first, tf.size(codes)))
        has_mark = tf.strings.substr(strings, 0, len(WORD_MARK.encode())) == WORD_MARK
        fits = (first < FAR) & (~has_mark | (first_code == _SPACE))
        return tf.ragged.boolean_mask(places, places.with_values(kept | ~tf.gather(fits, pieces)))


def _in_piece(numbers: tf.Tensor, codes: tf.Tensor) -> tf.Tensor:
    """Unique int64 numbers for pairs of a piece's number (int64) and a character (int32)."""
    return numbers * _MOST_CODES + tf.cast(codes, tf.int64)


def _part_places(
    parts: PieceParts, kept: tf.RaggedTensor, limits: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The place of the first character of each part, and after its last; see `alignment`."""
    available = tf.cast(kept.row_lengths(), tf.int32)  # [P]
    count = tf.gather(available, parts.piece)
    # A word mark has no place, one, or several invisible ones, so the first part takes the rest.
    extra = count - parts.total
    first_size = tf.maximum(parts.first_size + extra, 0)
    size = tf.where(parts.offset == 0, first_size, parts.size)
    begin = tf.where(parts.offset == 0, 0, parts.offset - parts.first_size + first_size)
    is_left = begin < count
    row_starts = tf.gather(tf.cast(kept.row_starts(), tf.int32), parts.piece)
    values = tf.concat([kept.flat_values, [0]], axis=0)
    limit = tf.size(kept.flat_values)
    first = tf.where(
        is_left,
        tf.gather(values, tf.minimum(row_starts + begin, limit)),
        tf.gather(limits, parts.piece),
    )
    end = tf.minimum(begin + size, count)
    last = tf.gather(values, tf.clip_by_value(row_starts + end - 1, 0, limit)) + 1
    return first, tf.where(is_left & (size > 0), last, first)


def _align_wordpiece(tokenizer: GraphWordPieceTokenizer, characters: Characters) -> AlignedBatch:
    def size_of(strings: tf.Tensor) -> tf.Tensor:
        words = tokenizer.split_words(strings)
        return tf.reduce_sum(tf.strings.length(words, unit="UTF8_CHAR"), axis=1)

    traced = _repeated(characters, characters.places, characters.places, characters.sizes(size_of))
    words, ids = tokenizer.pieces_of_words(characters.text)  # [B, (words)], [words, (pieces)]
    word_sizes = tf.strings.length(words.flat_values, unit="UTF8_CHAR")
    of_word = tf.gather(word_sizes, ids.value_rowids())
    sizes = tf.where(
        ids.flat_values == tokenizer.unknown_id,
        of_word,
        tf.gather(tf.constant(tokenizer.piece_sizes), ids.flat_values),
    )
    pieces = words.with_values(ids).merge_dims(1, 2)  # [B, (pieces)]
    rows = pieces.value_rowids()
    before = tf.cumsum(sizes, exclusive=True)
    begins = before - tf.gather(traced.begins, rows)
    starts = traced.first_at(rows, begins, characters)
    ends = traced.last_before(rows, begins + sizes)
    return AlignedBatch(pieces, pieces.with_values(starts), pieces.with_values(ends))
