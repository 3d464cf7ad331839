"""Tagged sentences as model inputs: the first piece of each word has the word's tag."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from data_pipeline.errors import UserError
from data_pipeline.finetuning.encoded import EncodedExamples, Slices, join, slice_indices, tokenize
from data_pipeline.finetuning.tagging import TaggedExample
from data_pipeline.tokenizers.base import Tokenizer


@dataclasses.dataclass(frozen=True, eq=False)
class TaggedPieces:
    """N sentences as pieces, with the place where each word begins.

    Attributes:
      examples: the sentences.
      labels: names of the C tags in order.
      pieces: `[CLS] words [SEP]` of each sentence, truncated to S pieces.
      rows: int64 [W], the sentence of each word that was not cut off, in the order of words.
      places: int64 [W], the position of its first piece in the sentence; 1 is after [CLS].
      tag_ids: int32 [W], the indices of the words' tags in `labels`; None if there are no targets.
    """

    examples: Sequence[TaggedExample]
    labels: tuple[str, ...]
    pieces: EncodedExamples
    rows: np.ndarray
    places: np.ndarray
    tag_ids: np.ndarray | None

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def note(self) -> str:
        """A sentence for the user about words that were cut off; "" if there are none."""
        words = np.array([len(example.words) for example in self.examples])
        cut = words - self.num_kept
        if not cut.any():
            return ""
        source = self.examples[0].source
        return (
            f"{source}: {cut.sum()} of {words.sum()} words, the ends of {np.count_nonzero(cut)} "
            f"sentences, do not fit into max_seq_length {self.pieces.max_seq_length}: they are "
            "not trained on, and they are predicted as O. Raise it, or split the sentences."
        )

    @functools.cached_property
    def num_kept(self) -> np.ndarray:
        """int64 [N], number of words at the beginning of each sentence that were not cut off."""
        return np.bincount(self.rows, minlength=len(self.examples))

    @functools.cached_property
    def _targets(self) -> dict[str, np.ndarray]:
        """The targets of all pieces; empty if there are none."""
        if self.tag_ids is None:
            return {}
        ids = np.zeros(len(self.pieces.ids), np.int32)
        weights = np.zeros(len(self.pieces.ids), np.float32)
        firsts = self.pieces.starts[self.rows] + self.places
        ids[firsts], weights[firsts] = self.tag_ids, 1
        return {"token_label_ids": ids, "token_weights": weights}

    def inputs(self, rows: np.ndarray, length: int) -> dict[str, np.ndarray]:
        """Model inputs int32 [B, L] of the sentences int64 [B], padded with zeros.

        If tags are known, also token_label_ids int32 [B, L] and token_weights float32 [B, L], which
        is 1 for the first pieces of words.
        """
        inputs = self.pieces.inputs(rows, length)
        is_piece = inputs["input_mask"].astype(bool)
        taken = slice_indices(self.pieces.starts[rows], self.pieces.lengths[rows])
        for name, values in self._targets.items():
            inputs[name] = np.zeros(is_piece.shape, values.dtype)
            inputs[name][is_piece] = values[taken]
        return inputs


def encode_tagged(
    examples: Sequence[TaggedExample],
    tokenizer: Tokenizer,
    max_seq_length: int,
    labels: Sequence[str],
    has_targets: bool,
) -> TaggedPieces:
    """Tokenizes sentences word by word; `has_targets` is False if tags are unknown.

    "Anna", "sleeps" -> [CLS] ▁an na ▁sleep s [SEP], words at the places 1 and 3. Words whose first
    piece does not fit into S are cut off.
    """
    if max_seq_length < 3:
        raise UserError(
            "max_seq_length should be at least 3, so that a word fits between [CLS] and [SEP]; "
            f"received {max_seq_length}."
        )
    tag_ids = _tag_ids(examples, labels) if has_targets else None
    words = tokenize(tokenizer, [word for example in examples for word in example.words])
    # A word without pieces, such as a control character, becomes the unknown piece, so that its tag
    # has a place. The id of that piece is appended to `ids`, and such words start there.
    ids = np.append(words.ids, np.int32(tokenizer.unk_id))
    starts = np.where(words.lengths > 0, words.starts, len(words.ids))
    word_lengths = np.maximum(words.lengths, 1)

    rows = np.repeat(np.arange(len(examples)), [len(example.words) for example in examples])
    lengths = np.bincount(rows, word_lengths, minlength=len(examples)).astype(np.int64)
    begins = np.cumsum(lengths) - lengths  # First piece of each sentence among all pieces.
    places = np.cumsum(word_lengths) - word_lengths - begins[rows]
    room = max_seq_length - 2
    sentences = Slices(ids[slice_indices(starts, word_lengths)], begins, np.minimum(lengths, room))
    nothing = Slices(ids[:0], np.zeros_like(begins), np.zeros_like(begins))
    is_pair = np.zeros(len(examples), bool)
    fits = places < room
    return TaggedPieces(
        examples,
        tuple(labels),
        join(tokenizer, sentences, nothing, is_pair, max_seq_length),
        rows[fits],
        places[fits] + 1,
        None if tag_ids is None else tag_ids[fits],
    )


def _tag_ids(examples: Sequence[TaggedExample], labels: Sequence[str]) -> np.ndarray:
    """The indices in `labels` of the tags of all words, int32."""
    known = {name: i for i, name in enumerate(labels)}
    found: list[int] = []
    for example in examples:
        if example.tags is None:
            raise UserError(
                f"{example.place}: found a word without a tag; training and scores need one. Use "
                "--mode=predict for files of words alone."
            )
        for number, tag in enumerate(example.tags):
            if tag not in known:
                raise UserError(
                    f"{example.place_of(number)}: the tag {tag!r} is not one of the training "
                    f"data's: {', '.join(labels):.300}."
                )
            found.append(known[tag])
    return np.array(found, np.int32)
