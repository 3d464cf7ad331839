"""Pieces of many examples without padding, and padded model inputs made from them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from data_pipeline.tokenizers.base import Tokenizer

SPECIAL_PIECES_OF_PAIR = 3  # [CLS], and [SEP] twice.


class Slices(NamedTuple):
    """The pieces of N texts: those of text n are ids[starts[n] : starts[n] + lengths[n]].

    Attributes:
      ids: int32, all pieces; equal texts share the same place in it.
      starts, lengths: int64 [N].
    """

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


def tokenize(tokenizer: Tokenizer, texts: Sequence[str]) -> Slices:
    """The pieces of texts; each distinct text is tokenized only once.

    ["a b", "c", "a b"] -> ids [5, 9, 7], starts [0, 2, 0], lengths [2, 1, 2].
    """
    # A passage of RACE has three or four questions, a premise of MNLI three hypotheses.
    numbers: dict[str, int] = {}
    places = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
    encoded = tokenizer.encode_flat(list(numbers))
    starts = np.cumsum(encoded.lengths) - encoded.lengths
    return Slices(encoded.ids, starts[places], encoded.lengths[places])


def slice_indices(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Concatenated indices of the elements of N slices: [7, 0], [2, 3] -> 7, 8, 0, 1, 2."""
    ends = np.cumsum(lengths)
    return np.arange(lengths.sum()) + np.repeat(starts - (ends - lengths), lengths)


# For GLUE's larger tasks, a table [N, S] with S = 512 would take 2.5 GB, nine tenths of it padding.
# So examples are concatenated, and rows are padded when a batch is made.
@dataclasses.dataclass(frozen=True)
class EncodedExamples:
    """Examples as concatenated pieces, [CLS] A [SEP] or [CLS] A [SEP] B [SEP].

    With C choices, an example has C such sequences, and R = N * C; otherwise R = N.

    Attributes:
      ids: int32 [T], the pieces of all sequences.
      lengths: int64 [R], number of pieces of each sequence.
      first_lengths: int64 [R], number of pieces of its first segment, including [CLS] and [SEP].
      max_seq_length: S; no sequence is longer.
      num_choices: C; None if an example is one sequence.
    """

    ids: np.ndarray
    lengths: np.ndarray
    first_lengths: np.ndarray
    max_seq_length: int
    num_choices: int | None = None

    def __len__(self) -> int:
        return len(self.lengths) // (self.num_choices or 1)

    @functools.cached_property
    def starts(self) -> np.ndarray:
        """int64 [R], the index of each sequence's first piece in `ids`."""
        return np.cumsum(self.lengths) - self.lengths

    @functools.cached_property
    def longest(self) -> np.ndarray:
        """int64 [N], number of pieces of the longest sequence of each example."""
        return self.lengths.reshape(len(self), -1).max(axis=1)

    def inputs(
        self, examples: np.ndarray | None = None, length: int | None = None
    ) -> dict[str, np.ndarray]:
        """Model inputs of some examples (None: all), padded with zeros to L (None: S); none of them
        may be longer.

        Returns input_word_ids, input_mask and input_type_ids, int32 [B, L], or [B, C, L].
        """
        length = length or self.max_seq_length
        rows = np.arange(len(self)) if examples is None else np.asarray(examples, np.int64)
        if self.num_choices:
            rows = rows[:, None] * self.num_choices + np.arange(self.num_choices)  # [B, C]
        shape, rows = (*rows.shape, length), rows.ravel()
        lengths, positions = self.lengths[rows], np.arange(length)
        mask = positions < lengths[:, None]
        word_ids = np.zeros(mask.shape, np.int32)
        # Assignment by mask fills rows in order, which is also the order of the pieces.
        word_ids[mask] = self.ids[slice_indices(self.starts[rows], lengths)]
        type_ids = mask & (positions >= self.first_lengths[rows][:, None])
        arrays = {"input_word_ids": word_ids, "input_mask": mask, "input_type_ids": type_ids}
        return {name: values.astype(np.int32).reshape(shape) for name, values in arrays.items()}


def join(
    tokenizer: Tokenizer,
    first: Slices,
    second: Slices,
    has_second: np.ndarray,
    max_seq_length: int,
    num_choices: int | None = None,
) -> EncodedExamples:
    """Adds special pieces to texts that already fit: 5 9 | 7 -> [CLS] 5 9 [SEP] 7 [SEP].

    `first` and `second` are R texts each; if `has_second`, bool [R], is False, a sequence ends
    after its first [SEP].
    """
    first_lengths = first.lengths + 2
    lengths = first_lengths + np.where(has_second, second.lengths + 1, 0)
    starts = np.cumsum(lengths) - lengths
    # All places that neither a text nor [CLS] overwrites are ends of segments.
    ids = np.full(lengths.sum(), tokenizer.sep_id, np.int32)
    ids[starts] = tokenizer.cls_id
    for text, start in ((first, starts + 1), (second, starts + first_lengths)):
        pieces = text.ids[slice_indices(text.starts, text.lengths)]
        ids[slice_indices(start, text.lengths)] = pieces
    return EncodedExamples(ids, lengths, first_lengths, max_seq_length, num_choices)
