"""Each word of a corpus is tokenized once: several times faster than SentencePiece, equal ids.

Pieces that never hold a space make the ids of a sentence those of its words one after the other.
So a dictionary from words to ids does most of the work. A sentence with a word for which the
tokenizer cannot vouch is encoded as a whole.
"""

from __future__ import annotations

import array
import itertools
from collections.abc import Sequence
from typing import Callable, NamedTuple

import numpy as np

MAX_WORDS = 1 << 19
_CHUNK_CHARACTERS = 1 << 21
_SENTENCE_END = "\0"
_END_ENTRY, _UNSURE_ENTRY, _NEW = 0, 1, -1


class FlatIds(NamedTuple):
    """Ids of many sentences, one after the other: ids int32 [T], lengths int64 [N]."""

    ids: np.ndarray
    lengths: np.ndarray


def flatten(rows: Sequence[Sequence[int]]) -> FlatIds:
    """Lists of ids as arrays."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    flat = itertools.chain.from_iterable(rows)
    return FlatIds(np.fromiter(flat, np.int32, int(lengths.sum())), lengths)


class WordCache:
    """Encodes sentences word by word.

    Entry n of the dictionary has the ids `ids[ends[n - 1]:ends[n]]`. Entry 0 is the end of a
    sentence, entry 1 stands for every word without sure ids; both have none.

    Args:
      encode_words: ids of each word; bool [words], False when they may depend on the sentence
        around the word, whose ids are then none.
      encode_sentences: ids of whole sentences.
      max_characters: longer sentences are always encoded as a whole.
    """

    def __init__(
        self,
        encode_words: Callable[[Sequence[str]], tuple[FlatIds, np.ndarray]],
        encode_sentences: Callable[[Sequence[str]], Sequence[Sequence[int]]],
        max_characters: int,
    ):
        self._encode_words, self._encode_sentences = encode_words, encode_sentences
        self._max_characters = max_characters
        self._clear()

    def _clear(self) -> None:
        self._entries = {_SENTENCE_END: _END_ENTRY}
        self._ids, self._ends = array.array("i"), array.array("q", [0, 0])

    def _learn(self, words: Sequence[str]) -> None:
        encoded, sure = self._encode_words(words)
        first = len(self._ends)
        numbers = np.where(sure, first - 1 + np.cumsum(sure), _UNSURE_ENTRY)
        self._entries.update(zip(words, numbers.tolist()))
        ends = len(self._ids) + np.cumsum(encoded.lengths[sure])
        self._ids.frombytes(encoded.ids.astype(np.int32).tobytes())
        self._ends.frombytes(ends.astype(np.int64).tobytes())

    def encode(self, sentences: Sequence[str]) -> FlatIds:
        """Ids of normalised sentences, which hold no NUL."""
        chunks, start = [], 0
        while start < len(sentences):
            end = start + 1
            size = len(sentences[start])
            while end < len(sentences) and size < _CHUNK_CHARACTERS:
                size += len(sentences[end])
                end += 1
            chunks.append(self._encode_chunk(sentences[start:end]))
            start = end
        if not chunks:
            return flatten([])
        return FlatIds(*(np.concatenate(columns) for columns in zip(*chunks)))

    def _encode_chunk(self, sentences: Sequence[str]) -> FlatIds:
        if len(self._entries) > MAX_WORDS:
            self._clear()
        if len(sentences) == 1 and len(sentences[0]) > self._max_characters:
            return flatten(self._encode_sentences(sentences))
        words = f" {_SENTENCE_END} ".join([*sentences, ""]).split()
        entries = self._look_up(words)
        ids, ends = np.array(self._ids, np.int32), np.array(self._ends, np.int64)
        starts = np.concatenate([[0], ends[:-1]])
        sizes = (ends - starts)[entries]  # Ids per word.
        sentence_ends = np.flatnonzero(entries == _END_ENTRY)
        lengths = np.diff(np.cumsum(sizes)[sentence_ends], prepend=0)
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        flat = ids[np.arange(sizes.sum()) + np.repeat(starts[entries] - first, sizes)]
        whole = self._to_encode_whole(sentences, entries, sentence_ends)
        return self._replace(FlatIds(flat, lengths), whole, sentences)

    def _look_up(self, words: Sequence[str]) -> np.ndarray:
        """Entries of words, learning those that are new."""
        found = map(self._entries.get, words, itertools.repeat(_NEW))
        entries = np.fromiter(found, np.int64, len(words))
        new = np.flatnonzero(entries == _NEW).tolist()
        if new:
            self._learn(list(dict.fromkeys(words[i] for i in new)))
            entries[new] = [self._entries[words[i]] for i in new]
        return entries

    def _to_encode_whole(
        self, sentences: Sequence[str], entries: np.ndarray, sentence_ends: np.ndarray
    ) -> np.ndarray:
        """Indices of sentences with an unsure word or too many characters."""
        unsure = np.searchsorted(sentence_ends, np.flatnonzero(entries == _UNSURE_ENTRY))
        sizes = np.fromiter(map(len, sentences), np.int64, len(sentences))
        return np.union1d(unsure, np.flatnonzero(sizes > self._max_characters))

    def _replace(
        self, encoded: FlatIds, whole: np.ndarray, sentences: Sequence[str]
    ) -> FlatIds:
        """Puts the ids of sentences encoded as a whole in place of what was made of their words."""
        if not len(whole):
            return encoded
        rows = flatten(self._encode_sentences([sentences[i] for i in whole.tolist()]))
        ends = np.cumsum(encoded.lengths)
        row_ends = np.cumsum(rows.lengths)
        pieces, done = [], 0
        for i, row_end, length in zip(
            whole.tolist(), row_ends.tolist(), rows.lengths.tolist()
        ):
            end = int(ends[i])
            pieces += [
                encoded.ids[done : end - int(encoded.lengths[i])],
                rows.ids[row_end - length : row_end],
            ]
            done = end
        lengths = encoded.lengths.copy()
        lengths[whole] = rows.lengths
        return FlatIds(np.concatenate([*pieces, encoded.ids[done:]]), lengths)
