"""A table from words to ids: each word of a corpus is tokenized once.

If pieces never contain a space, the ids of a sentence are the concatenated ids of its words. So a
table from words to ids does most of the work, up to three times as fast as SentencePiece on a large
corpus. A sentence with a word whose ids may depend on its context is encoded as a whole.

    "the cat", "the dog"   new words the, cat, dog are tokenized once each, as entries 1, 2, 3:
                           ids [11, 25, 7, 42], ends [0, 1, 3, 4]: the 11, cat 25 7, dog 42
    entries 1 2 | 1 3      -> ids 11, 25, 7 | 11, 42
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from data_pipeline.tokenizers.base import FlatIds, flatten

# NumPy processes the words of thousands of sentences at once: a Python loop over words takes as
# long as SentencePiece itself. This needs a custom hash table, since dict cannot look up an array.
# Words are identified by 64-bit hashes and never compared: a million words all have different
# hashes with a probability of 1 - 3e-8.
MAX_WORDS = 1 << 20
_CHUNK_CHARACTERS = 1 << 19
_SMALLEST_TABLE = 1 << 16
_UNSURE_ENTRY, _NEW = 0, -1
_BASE = 0x9E3779B97F4A7C15
_INVERSE_BASE = pow(_BASE, -1, 1 << 64)
_IS_SPACE = np.array([chr(i).isspace() for i in range(128)] + [False] * 128)


class Words(NamedTuple):
    """W words in UTF-8 as slices of one text: b"a cat", starts [0, 2], ends [1, 5].

    Attributes:
      content: the text.
      starts, ends: int64 [W], word w is content[starts[w]:ends[w]].
    """

    content: bytes
    starts: np.ndarray
    ends: np.ndarray

    def texts(self) -> list[str]:
        """The words as strings."""
        return [
            self.content[start:end].decode("utf-8")
            for start, end in zip(self.starts.tolist(), self.ends.tolist())
        ]


def _powers(base: int, count: int) -> np.ndarray:
    """uint64 [count]: base ** i modulo 2^64."""
    powers = np.full(count, base, np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)


class _Hasher:
    """Hashes many slices of a byte string at once, independent of their position."""

    # The hash of bytes c0 c1 c2 ... is (c0 + 1) + (c1 + 1) * B + (c2 + 1) * B^2 ... modulo 2^64.
    # With the sums of (c[i] + 1) * B^i over the whole text, the hash of data[start:end] is
    #
    #     (sums[end] - sums[start]) * B^-start
    #
    # so no loop over words is needed. B is odd, so it has an inverse modulo 2^64.
    def __init__(self) -> None:
        self._powers = self._inverses = np.zeros(0, np.uint64)

    def hash(self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """uint64 [W]: hashes of slices of uint8 data; never 0, which marks empty slots."""
        if len(data) > len(self._powers):
            self._powers = _powers(_BASE, 2 * len(data))
            self._inverses = _powers(_INVERSE_BASE, 2 * len(data))
        sums = np.zeros(len(data) + 1, np.uint64)
        terms = (data.astype(np.uint64) + np.uint64(1)) * self._powers[: len(data)]
        np.cumsum(terms, out=sums[1:])
        hashes = (sums[ends] - sums[starts]) * self._inverses[starts]
        # The low bits select a slot, but in sums they do not depend on the high bits of the terms:
        # so the high bits are mixed in.
        hashes ^= hashes >> np.uint64(32)
        hashes *= np.uint64(_BASE)
        hashes ^= hashes >> np.uint64(29)
        return hashes + (hashes == 0)


class _HashTable:
    """A table from hashes to entries with lookups of arrays; its size is a power of two."""

    # Open addressing with linear probing, at most half full, so that few hashes are stored after
    # their first slot, and the loops below are short.
    def __init__(self) -> None:
        self._hashes = np.zeros(_SMALLEST_TABLE, np.uint64)
        self._entries = np.zeros(_SMALLEST_TABLE, np.int32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, hashes: np.ndarray) -> np.ndarray:
        """int32 entries of hashes; _NEW for those that are not in the table."""
        entries = np.full(len(hashes), _NEW, np.int32)
        slots = self._first_slots(hashes)
        found = self._hashes[slots]
        is_here = found == hashes
        np.copyto(entries, self._entries[slots], where=is_here)
        # Hashes whose slot holds another hash try the next slot, in rounds.
        rows = np.flatnonzero(~is_here & (found != 0))
        while len(rows):
            slots[rows] = (slots[rows] + 1) & (len(self._hashes) - 1)
            found = self._hashes[slots[rows]]
            is_here = found == hashes[rows]
            entries[rows[is_here]] = self._entries[slots[rows[is_here]]]
            rows = rows[~is_here & (found != 0)]
        return entries

    def add(self, hashes: np.ndarray, entries: np.ndarray) -> None:
        """Adds distinct hashes that are not yet in the table."""
        self._count += len(hashes)
        if 2 * self._count > len(self._hashes):
            used = np.flatnonzero(self._hashes)
            old = self._hashes[used], self._entries[used]
            size = 1 << (4 * self._count).bit_length()
            self._hashes, self._entries = np.zeros(size, np.uint64), np.zeros(size, np.int32)
            self._place(*old)
        self._place(hashes, entries)

    def _place(self, hashes: np.ndarray, entries: np.ndarray) -> None:
        slots = self._first_slots(hashes)
        while len(hashes):
            empty = np.flatnonzero(self._hashes[slots] == 0)
            # If several hashes are written to one slot, NumPy keeps the last; the others are found
            # to be missing, and try the next slot.
            self._hashes[slots[empty]] = hashes[empty]
            placed = self._hashes[slots] == hashes
            self._entries[slots[placed]] = entries[placed]
            hashes, entries, slots = hashes[~placed], entries[~placed], slots[~placed]
            slots = (slots + 1) & (len(self._hashes) - 1)

    def _first_slots(self, hashes: np.ndarray) -> np.ndarray:
        return (hashes & np.uint64(len(self._hashes) - 1)).astype(np.int64)


class _Growing:
    """An array to append to; its capacity is doubled when full, so most additions copy nothing."""

    def __init__(self, dtype: type, first: Sequence[int] = ()) -> None:
        self._values = np.array(first, dtype)
        self._size = len(self._values)

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> np.ndarray:
        """The values added so far."""
        return self._values[: self._size]

    def extend(self, values: np.ndarray) -> None:
        """Adds values."""
        size = self._size + len(values)
        if size > len(self._values):
            grown = np.zeros(2 * size, self._values.dtype)
            grown[: self._size] = self.values
            self._values = grown
        self._values[self._size : size] = values
        self._size = size


class WordCache:
    """Encodes sentences word by word.

    The word with entry n has the ids `ids[ends[n - 1]:ends[n]]`. Entry 0 is shared by all unsure
    words, whose ids may depend on the sentence.

    Args:
      encode_words: words -> their ids, and bool [W], False for unsure words, which get no ids here.
      encode_sentences: sentences -> their ids, each encoded as a whole.
      max_characters: longer sentences are always encoded as a whole.
    """

    def __init__(
        self,
        encode_words: Callable[[Words], tuple[FlatIds, np.ndarray]],
        encode_sentences: Callable[[Sequence[str]], Sequence[Sequence[int]]],
        max_characters: int,
    ) -> None:
        self._encode_words, self._encode_sentences = encode_words, encode_sentences
        self._max_characters = max_characters
        self._hasher = _Hasher()
        self._clear()

    def _clear(self) -> None:
        self._table = _HashTable()
        self._ids, self._ends = _Growing(np.int32), _Growing(np.int64, [0])

    def encode(self, sentences: Sequence[str]) -> FlatIds:
        """Ids of normalized sentences, which must not contain line breaks."""
        sizes = np.fromiter(map(len, sentences), np.int64, len(sentences))
        is_long = sizes > self._max_characters
        # Long sentences are treated as empty until the end, so that all rows keep their places.
        texts = sentences
        if is_long.any():
            texts = ["" if long else text for text, long in zip(sentences, is_long.tolist())]
        totals = np.cumsum(np.where(is_long, 0, sizes))
        chunks, start = [], 0
        while start < len(texts):
            done = totals[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(totals, done + _CHUNK_CHARACTERS)))
            chunks.append(self._encode_chunk(texts[start:end]))
            start = end
        if not chunks:
            return flatten([])
        ids, lengths, is_unsure = (np.concatenate(columns) for columns in zip(*chunks))
        whole = np.flatnonzero(is_unsure | is_long)
        return self._replace(FlatIds(ids, lengths), whole, sentences)

    def _encode_chunk(self, sentences: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids, lengths, and bool [N]: whether the sentence has an unsure word.

        "a cat\\ncat\\n"           spaces [1, 5, 9], starts [0, 2, 6], ends [1, 5, 9]
        entries [1, 2, 2]         sizes [1, 2, 2], total [0, 1, 3, 5]
        words_before [2, 3]       words up to each line break -> lengths [3, 2]
        """
        if len(self._table) > MAX_WORDS:  # Bounds memory; common words are soon added again.
            self._clear()
        content = "\n".join([*sentences, ""]).encode("utf-8")
        data = np.frombuffer(content, np.uint8)
        spaces = np.flatnonzero(_IS_SPACE[data])
        starts, ends = np.concatenate([[0], spaces[:-1] + 1]), spaces
        is_word = ends > starts
        starts, ends = starts[is_word], ends[is_word]
        entries = self._look_up(Words(content, starts, ends), self._hasher.hash(data, starts, ends))
        # Entry 0 has no ids: its end is 0, and its size is set to 0.
        last = self._ends.values[entries]
        sizes = last - np.where(entries, self._ends.values[entries - 1], 0)
        total = np.concatenate([[0], np.cumsum(sizes)])
        # The ids of word w are copied from first[w] to total[w]: sizes [2, 1], with ids that end at
        # [9, 4] -> first [7, 3], total [0, 2, 3], copied from [7, 8, 3].
        first = last - sizes
        shift = np.repeat(first - total[:-1], sizes)
        flat = self._ids.values[np.arange(total[-1]) + shift]
        words_before = np.searchsorted(starts, np.flatnonzero(data == ord("\n")))
        is_unsure = np.zeros(len(sentences), bool)
        unsure_words = np.flatnonzero(entries == _UNSURE_ENTRY)
        is_unsure[np.searchsorted(words_before, unsure_words, side="right")] = True
        return flat, np.diff(total[words_before], prepend=0), is_unsure

    def _look_up(self, words: Words, hashes: np.ndarray) -> np.ndarray:
        """Entries of words; new words are tokenized and added first."""
        entries = self._table.get(hashes)
        new = np.flatnonzero(entries == _NEW)
        if len(new):
            unique, places, inverse = np.unique(hashes[new], return_index=True, return_inverse=True)
            places = new[places]
            learned = self._learn(Words(words.content, words.starts[places], words.ends[places]))
            self._table.add(unique, learned)
            entries[new] = learned[inverse]
        return entries

    def _learn(self, words: Words) -> np.ndarray:
        """Tokenizes and stores new words; returns their entries: sure [T, F, T] -> [5, 0, 6]."""
        encoded, sure = self._encode_words(words)
        entries = np.where(sure, len(self._ends) - 1 + np.cumsum(sure), _UNSURE_ENTRY)
        self._ends.extend(len(self._ids) + np.cumsum(encoded.lengths[sure]))
        self._ids.extend(encoded.ids)
        return entries.astype(np.int32)

    def _replace(self, encoded: FlatIds, whole: np.ndarray, sentences: Sequence[str]) -> FlatIds:
        """Replaces the ids of the sentences numbered in `whole`, which are encoded as a whole."""
        if not len(whole):
            return encoded
        rows = self._encode_sentences([sentences[i] for i in whole.tolist()])
        ends = np.cumsum(encoded.lengths)
        parts, done = [], 0
        for row, start, end in zip(
            rows, (ends - encoded.lengths)[whole].tolist(), ends[whole].tolist()
        ):
            parts += [encoded.ids[done:start], np.array(row, np.int32)]
            done = end
        lengths = encoded.lengths.copy()
        lengths[whole] = [len(row) for row in rows]
        return FlatIds(np.concatenate([*parts, encoded.ids[done:]]), lengths)
