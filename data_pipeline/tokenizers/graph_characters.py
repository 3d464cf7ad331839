"""The characters of texts in a graph: code points, bytes, whitespace and words.

The texts of a batch are concatenated in flat tensors; places are counted from 0 in each text.
Shapes: B batch, N characters of all texts, P places in them.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from data_pipeline.tokenizers.graph import graph_class
from data_pipeline.tokenizers.normalization import (
    Ranges,
    mark_ranges,
    ranges_where,
    whitespace_ranges,
)

FAR = np.int32(2**31 - 1)


class GraphWords(NamedTuple):
    """Words of B texts, [B, (words)] each.

    Attributes:
      texts: string.
      starts, ends: int32, places of characters in the text; the end is exclusive.
    """

    texts: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


@functools.cache
def plain_space_ranges() -> Ranges:
    """Characters that NFKD maps to a space: the space itself, and spaces of other widths."""
    return ranges_where(lambda each: each.isspace() and unicodedata.normalize("NFKD", each) == " ")


def is_in(codes: tf.Tensor, ranges: Ranges) -> tf.Tensor:
    """Whether code points, int32 [N], are in inclusive ascending ranges: bool [N]."""
    bounds = np.array([(first, last + 1) for first, last in ranges], np.int32).ravel()
    # A code is inside a range if an odd number of the ascending bounds precedes it.
    return tf.searchsorted(tf.constant(bounds), codes, side="right") % 2 == 1


def first_of_run(flags: tf.Tensor, joined: tf.Tensor) -> tf.Tensor:
    """The first elements of runs of True; bool [N]. `joined` [N]: may continue the previous one."""
    # Cut to size for texts without any character, where [False] alone would be too long.
    before = tf.concat([[False], flags[:-1]], axis=0)[: tf.size(flags)]
    return flags & ~(before & joined)


class Characters:
    """The characters of B texts, flat.

    Args:
      text: UTF-8 strings [B].

    Attributes:
      text: the strings with U+FFFD for bytes that are not UTF-8.
      codes: int32 [N], code points.
      rows: int64 [N], the number of the text that contains each character.
      places: int32 [N], the place of each character in that text.
      byte_starts: int32 [N], the place of its first byte in that text.
      lengths: int32 [B], number of characters of each text.
      begins: int32 [B], index of the first character of each text among all characters.
      is_space: bool [N], whether Python considers it whitespace.
      run_starts: bool [N], the first character of each run of whitespace.
      run_firsts, run_lasts: int32 [N], for whitespace, the first and last place of its run.
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
        # All other characters share one additional run, whose values are meaningless.
        self._runs = tf.where(self.is_space, runs, self._num_runs)
        self.run_firsts = self._of_run(tf.math.unsorted_segment_min, self.places)
        self.run_lasts = self._of_run(tf.math.unsorted_segment_max, self.places)

    def _of_run(self, reduce: Callable[..., tf.Tensor], values: tf.Tensor) -> tf.Tensor:
        """A reduction over the run of whitespace that contains each character, int32 [N]."""
        return tf.gather(reduce(values, self._runs, self._num_runs + 1), self._runs)

    def space_places(self) -> tuple[tf.Tensor, tf.Tensor]:
        """First and last place that a run's single space stands for, see `alignment`: int32 [N]."""
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
        """The words, separated by whitespace: " Ça  va" -> "Ça" at [1, 3], "va" at [5, 7]."""
        is_word = ~self.is_space
        begins = first_of_run(is_word, self.places > 0)
        word = tf.boolean_mask(tf.cumsum(tf.cast(begins, tf.int32)) - 1, is_word)
        count = tf.reduce_sum(tf.cast(begins, tf.int32))
        lasts = tf.math.unsorted_segment_max(tf.boolean_mask(self.places, is_word), word, count)
        rows = tf.boolean_mask(self.rows, begins)
        # RE2's \s is only ASCII whitespace, but `is_space` covers all of Unicode.
        spaces = graph_class(whitespace_ranges()) + "+"
        texts = tf.strings.split(tf.strings.regex_replace(self.text, spaces, " "), sep=" ")
        starts = tf.RaggedTensor.from_value_rowids(
            tf.boolean_mask(self.places, begins),
            rows,
            nrows=tf.size(self.lengths, tf.int64),  # The last texts may have no word.
            validate=False,
        )
        # Whitespace at the edges of a text leaves empty strings, which have no start.
        texts = starts.with_values(tf.boolean_mask(texts.flat_values, texts.flat_values != ""))
        return GraphWords(texts, starts, starts.with_values(lasts + 1))

    def bytes_at(self, rows: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """Bytes before places, int32 [P], in the texts `rows` [P]; at a text's end, all bytes."""
        at = tf.gather(self.begins, rows) + places
        # The end of the last text is past all characters: there `gather` finds the unused 0.
        starts = tf.concat([self.byte_starts, [0]], axis=0)
        found = tf.gather(starts, tf.minimum(at, tf.size(self.byte_starts)))
        all_bytes = tf.gather(tf.strings.length(self.text), rows)
        return tf.where(places >= tf.gather(self.lengths, rows), all_bytes, found)

    def trimmed(
        self, rows: tf.Tensor, firsts: tf.Tensor, lasts: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Removes whitespace around spans, int32 [P]: "a b " with places 0 and 3 -> 0, 3.

        Takes the first and last place, both inclusive; returns the first place and the place after
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
        """Moves places [P] in the texts `rows` [P] past any combining marks there: int32 [P].

        In "a", a mark, "b": 1 -> 2; 0 and 2 are unchanged.
        """
        is_mark = is_in(self.codes, mark_ranges())
        begins = tf.cast(first_of_run(is_mark, self.places > 0), tf.int32)
        run, count = tf.cumsum(begins), tf.reduce_sum(begins) + 1  # Run 0 is before the first.
        lasts = tf.math.unsorted_segment_max(tf.where(is_mark, self.places, -1), run, count)
        moved = tf.where(is_mark, tf.gather(lasts, run) + 1, self.places)
        at = tf.minimum(tf.gather(self.begins, rows) + places, tf.size(moved))
        found = tf.gather(tf.concat([moved, [0]], axis=0), at)
        return tf.where(places < tf.gather(self.lengths, rows), found, places)
