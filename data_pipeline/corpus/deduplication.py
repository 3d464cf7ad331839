"""Finds duplicate documents by 64-bit digests; the first one in corpus order is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from data_pipeline.corpus.blocks import TextBlock
from data_pipeline.corpus.documents import Corpus, raw_documents
from data_pipeline.corpus.report import ReadReport

_BUFFER = 1 << 18  # Numbers collected in a Python set before they are merged, about 20 MB.


def document_digests(block: TextBlock, corpus: Corpus) -> list[int]:
    """A 64-bit digest of each document, equal for documents that differ only in whitespace."""
    return [
        int.from_bytes(
            hashlib.blake2b(
                " ".join(word for text in raw.texts for word in text.split()).encode("utf-8"),
                digest_size=8,
            ).digest(),
            "little",
        )
        # The report is discarded: problems are counted when records are made from the block.
        for raw in raw_documents(block, corpus, ReadReport())
    ]


class SeenDigests:
    """A set of 64-bit numbers that takes about 8 bytes per number, and twice that while two arrays
    are merged. (A Python set takes about ten times as much.)
    """

    def __init__(self) -> None:
        # Each array is more than twice as long as the next, so that a number is copied once per
        # doubling of the set, not at every addition. Lengths 1000, 400, 100; 60 more
        # -> 1000, 400, 160; 90 more -> 1650.
        self._sorted: list[np.ndarray] = []
        self._recent: set[int] = set()

    def add(self, digests: Sequence[int]) -> list[int]:
        """Adds numbers; returns the indices of those already in the set or earlier in `digests`.

        Adding [5, 7, 5] to a set that holds 7 -> [1, 2].
        """
        values = np.array(digests, np.uint64)
        known = np.zeros(len(values), bool)
        for array in self._sorted:
            # For a number above all others, searchsorted returns len(array), which is clipped.
            known |= array[np.minimum(np.searchsorted(array, values), len(array) - 1)] == values
        found = []
        for i, (digest, is_known) in enumerate(zip(digests, known.tolist())):
            if is_known or digest in self._recent:
                found.append(i)
            else:
                self._recent.add(digest)
        if len(self._recent) >= _BUFFER:
            array = np.fromiter(self._recent, np.uint64, len(self._recent))
            self._recent = set()
            while self._sorted and len(self._sorted[-1]) <= 2 * len(array):
                array = np.concatenate([self._sorted.pop(), array])
            array.sort(kind="stable")  # Merges the parts that are already sorted.
            self._sorted.append(array)
        return found
