"""Pieces of many examples without padding, and the padded inputs of a model made of them."""

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
      ids: int32, all pieces; texts that are equal have the same place in it.
      starts, lengths: int64 [N].
    """

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


def tokenize(tokenizer: Tokenizer, texts: Sequence[str]) -> Slices:
    """The pieces of texts, each of which is tokenized once, however often it comes.

    ["a b", "c", "a b"] -> ids [5, 9, 7], starts [0, 2, 0], lengths [2, 1, 2].
    """
    # A passage of RACE comes with three or four questions, a premise of MNLI with three hypotheses.
    numbers: dict[str, int] = {}
    places = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
    encoded = tokenizer.encode_flat(list(numbers))
    starts = np.cumsum(encoded.lengths) - encoded.lengths
    return Slices(encoded.ids, starts[places], encoded.lengths[places])


def slice_indices(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Indices of the elements of N slices, one after the other: [7, 0], [2, 3] -> 7, 8, 0, 1, 2."""
    ends = np.cumsum(lengths)
    return np.arange(lengths.sum()) + np.repeat(starts - (ends - lengths), lengths)


# A table [N, S] of GLUE's larger tasks at S = 512 has 2.5 GB, of which nine tenths are padding. So
# examples are kept one after the other, and rows are padded when a batch is made.
@dataclasses.dataclass(frozen=True)
class EncodedExamples:
    """Examples as pieces, [CLS] A [SEP] or [CLS] A [SEP] B [SEP], one after the other.

    With C choices an example is C such sequences, and there are R = N * C of them; otherwise R = N.

    Attributes:
      ids: int32 [T], the pieces of all sequences.
      lengths: int64 [R], pieces of each sequence.
      first_lengths: int64 [R], pieces of its first segment, [CLS] and [SEP] included.
      max_seq_length: S; no sequence is longer.
      num_choices: C; None: an example is one sequence.
    """

    ids: np.ndarray
    lengths: np.ndarray
    first_lengths: np.ndarray
    max_seq_length: int
    num_choices: int | None = None

    def __len__(self) -> int:
        return len(self.lengths) // (self.num_choices or 1)

    @functools.cached_property
    def _starts(self) -> np.ndarray:
        """int64 [R], the place of each sequence in `ids`."""
        return np.cumsum(self.lengths) - self.lengths

    @functools.cached_property
    def longest(self) -> np.ndarray:
        """int64 [N], pieces of the longest sequence of each example."""
        return self.lengths.reshape(len(self), -1).max(axis=1)

    def inputs(
        self, examples: np.ndarray | None = None, length: int | None = None
    ) -> dict[str, np.ndarray]:
        """A model's inputs of some examples (None: all), padded with zeros to L (None: S), which
        none may exceed.

        Gives input_word_ids, input_mask and input_type_ids, int32 [B, L], or [B, C, L].
        """
        length = length or self.max_seq_length
        rows = np.arange(len(self)) if examples is None else np.asarray(examples, np.int64)
        if self.num_choices:
            rows = rows[:, None] * self.num_choices + np.arange(self.num_choices)  # [B, C]
        shape, rows = (*rows.shape, length), rows.ravel()
        lengths, positions = self.lengths[rows], np.arange(length)
        mask = positions < lengths[:, None]
        word_ids = np.zeros(mask.shape, np.int32)
        # True places are filled in the order of rows, which is that of their pieces.
        word_ids[mask] = self.ids[slice_indices(self._starts[rows], lengths)]
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
    """Sequences of special pieces and texts that fit: 5 9 | 7 -> [CLS] 5 9 [SEP] 7 [SEP].

    `first` and `second` are R texts each; where `has_second`, bool [R], is False, a sequence ends
    after its first [SEP].
    """
    first_lengths = first.lengths + 2
    lengths = first_lengths + np.where(has_second, second.lengths + 1, 0)
    starts = np.cumsum(lengths) - lengths
    # What no text and no [CLS] overwrites is the end of a segment.
    ids = np.full(lengths.sum(), tokenizer.sep_id, np.int32)
    ids[starts] = tokenizer.cls_id
    for text, start in ((first, starts + 1), (second, starts + first_lengths)):
        pieces = text.ids[slice_indices(text.starts, text.lengths)]
        ids[slice_indices(start, text.lengths)] = pieces
    return EncodedExamples(ids, lengths, first_lengths, max_seq_length, num_choices)
