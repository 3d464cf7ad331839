"""The characters of texts in a graph: code points, bytes, white space and words.

Texts of a batch lie one after the other in flat tensors; places are counted in each text from 0.
Shapes: B batch, N characters of all texts, P places in them.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from data_pipeline.tokenizers.graph import graph_class
from data_pipeline.tokenizers.normalization import mark_ranges, ranges_where, whitespace_ranges

FAR = np.int32(2**31 - 1)


class GraphWords(NamedTuple):
    """Words of B texts, [B, (words)] each.

    Attributes:
      texts: string.
      starts, ends: int32, characters of the text, the end excluded.
    """

    texts: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


@functools.cache
def plain_space_ranges() -> tuple[tuple[int, int], ...]:
    """Characters that are a space after NFKD: the space itself, and those of other widths."""
    return tuple(
        ranges_where(lambda each: each.isspace() and unicodedata.normalize("NFKD", each) == " ")
    )


def is_in(codes: tf.Tensor, ranges: Sequence[tuple[int, int]]) -> tf.Tensor:
    """Whether code points, int32 [N], are in inclusive ascending ranges: bool [N]."""
    bounds = np.array([(first, last + 1) for first, last in ranges], np.int32).ravel()
    # The bounds ascend: behind an odd number of them, a code is inside a range.
    return tf.searchsorted(tf.constant(bounds), codes, side="right") % 2 == 1


def first_of_run(flags: tf.Tensor, joined: tf.Tensor) -> tf.Tensor:
    """The beginnings of runs of True; bool [N] each. `joined`: it may go on from the one before."""
    # Cut for texts without any character, where [False] alone would be one too many.
    before = tf.concat([[False], flags[:-1]], axis=0)[: tf.size(flags)]
    return flags & ~(before & joined)


class Characters:
    """The characters of B texts, flat.

    Args:
      text: UTF-8 strings [B].

    Attributes:
      text: the same; bytes that are not UTF-8 are U+FFFD.
      codes: int32 [N], code points.
      rows: int64 [N], the text that each is of.
      places: int32 [N], its place in that text.
      byte_starts: int32 [N], the place of its first byte in that text.
      lengths: int32 [B], characters of each text.
      begins: int32 [B], where each text begins among all characters.
      is_space: bool [N], white space to Python.
      run_starts: bool [N], the first of each run of white space.
      run_firsts, run_lasts: int32 [N], first and last place of the white space around each that is.
    """

    def __init__(self, text: tf.Tensor) -> None:
        self.text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
        codes, byte_starts = tf.strings.unicode_decode_with_offsets(self.text, "UTF-8")
        self.codes = codes.flat_values
        self.byte_starts = tf.cast(byte_starts.flat_values, tf.int32)
        self.rows = codes.value_rowids()
        self.lengths = tf.cast(codes.row_lengths(), tf.int32)
        self.begins = tf.cast(codes.row_starts(), tf.int32)
        self.places = tf.range(tf.size(self.codes)) - tf.gather(self.begins, self.rows)
        self.is_space = is_in(self.codes, whitespace_ranges())
        self.run_starts = first_of_run(self.is_space, self.places > 0)
        starts = tf.cast(self.run_starts, tf.int32)
        runs = tf.cumsum(starts) - 1
        self._num_runs = tf.reduce_sum(starts)
        # All that is not white space shares one more run, whose values mean nothing.
        self._runs = tf.where(self.is_space, runs, self._num_runs)
        self.run_firsts = self._of_run(tf.math.unsorted_segment_min, self.places)
        self.run_lasts = self._of_run(tf.math.unsorted_segment_max, self.places)

    def _of_run(self, reduce: Callable[..., tf.Tensor], values: tf.Tensor) -> tf.Tensor:
        """A reduction over the white space that each character is in, int32 [N]."""
        return tf.gather(reduce(values, self._runs, self._num_runs + 1), self._runs)

    def space_places(self) -> tuple[tf.Tensor, tf.Tensor]:
        """First and last place of what the one space stands for, see `alignment`: int32 [N]."""
        plain = is_in(self.codes, plain_space_ranges())
        found = self._of_run(
            tf.math.unsorted_segment_min, tf.where(plain, self.places, FAR)
        )  # Place of the first plain space, if there is one.
        return tuple(
            tf.where(found < FAR, found, other) for other in (self.run_firsts, self.run_lasts)
        )

    def sizes(self, size_of: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
        """`size_of` (strings [U] -> int32 [U]) of each character by itself, int32 [N]."""
        unique, places = tf.unique(self.codes)
        strings = tf.strings.unicode_encode(unique[:, None], "UTF-8")
        return tf.gather(size_of(strings), places)

    def words(self) -> GraphWords:
        """The words that white space separates: " Ça  va" -> "Ça" of [1, 3], "va" of [5, 7]."""
        is_word = ~self.is_space
        begins = first_of_run(is_word, self.places > 0)
        word = tf.boolean_mask(tf.cumsum(tf.cast(begins, tf.int32)) - 1, is_word)
        count = tf.reduce_sum(tf.cast(begins, tf.int32))
        lasts = tf.math.unsorted_segment_max(tf.boolean_mask(self.places, is_word), word, count)
        rows = tf.boolean_mask(self.rows, begins)
        # RE2's \s is the white space of ASCII alone, and `is_space` has all of Unicode's.
        spaces = graph_class(whitespace_ranges()) + "+"
        texts = tf.strings.split(tf.strings.regex_replace(self.text, spaces, " "), sep=" ")
        starts = tf.RaggedTensor.from_value_rowids(
            tf.boolean_mask(self.places, begins),
            rows,
            nrows=tf.size(self.lengths, tf.int64),  # The last texts may have no word.
            validate=False,
        )
        # White space at the edges of a text leaves empty strings there, which have no start.
        texts = starts.with_values(tf.boolean_mask(texts.flat_values, texts.flat_values != ""))
        return GraphWords(texts, starts, starts.with_values(lasts + 1))

    def bytes_at(self, rows: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """Bytes before places, int32 [P], in the texts `rows` [P]; at a text's end all of them."""
        at = tf.gather(self.begins, rows) + places
        # The end of the last text is behind all characters: `gather` finds the 0, unused.
        starts = tf.concat([self.byte_starts, [0]], axis=0)
        found = tf.gather(starts, tf.minimum(at, tf.size(self.byte_starts)))
        all_bytes = tf.gather(tf.strings.length(self.text), rows)
        return tf.where(places >= tf.gather(self.lengths, rows), all_bytes, found)

    def trimmed(
        self, rows: tf.Tensor, firsts: tf.Tensor, lasts: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Spans without the white space around them, int32 [P]: "a b " of [0, 3] -> 0, 3.

        Takes first and last characters, both in the span; gives the first one, and the place after
        the last, which are equal if nothing is left.
        """
        begins, limit = tf.gather(self.begins, rows), tf.size(self.codes)

        def moved(places: tf.Tensor, beyond: tf.Tensor) -> tf.Tensor:
            is_inside = (places >= 0) & (places < tf.gather(self.lengths, rows))
            at = tf.where(is_inside, begins + places, limit)
            is_space = tf.gather(tf.concat([self.is_space, [False]], axis=0), at)
            return tf.where(is_space, tf.gather(tf.concat([beyond, [0]], axis=0), at), places)

        firsts, lasts = moved(firsts, self.run_lasts + 1), moved(lasts, self.run_firsts - 1)
        return firsts, tf.maximum(lasts + 1, firsts)

    def after_marks(self, rows: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """Places [P], moved behind the marks that stand there, in the texts `rows` [P]: int32 [P].

        Of "a", a mark and "b": 1 -> 2, and 0 and 2 stay.
        """
        is_mark = is_in(self.codes, mark_ranges())
        begins = tf.cast(first_of_run(is_mark, self.places > 0), tf.int32)
        run, count = tf.cumsum(begins), tf.reduce_sum(begins) + 1  # Run 0 is before the first.
        lasts = tf.math.unsorted_segment_max(tf.where(is_mark, self.places, -1), run, count)
        moved = tf.where(is_mark, tf.gather(lasts, run) + 1, self.places)
        at = tf.minimum(tf.gather(self.begins, rows) + places, tf.size(moved))
        found = tf.gather(tf.concat([moved, [0]], axis=0), at)
        return tf.where(places < tf.gather(self.lengths, rows), found, places)
