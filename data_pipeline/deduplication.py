"""Documents that occurred before, by digests of 64 bits: the first in the corpus' order stays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_BUFFER = 1 << 18


class SeenDigests:
    """A set of 64-bit numbers in some 8 bytes each."""

    def __init__(self):
        self._sorted = np.zeros(0, np.uint64)
        self._recent: set[int] = set()

    def add(self, digests: Sequence[int]) -> list[int]:
        """Adds numbers; returns the indices of those that were there, or occur twice."""
        values = np.array(digests, np.uint64)
        places = np.searchsorted(self._sorted, values)
        known = np.zeros(len(values), bool)
        inside = places < len(self._sorted)
        known[inside] = self._sorted[places[inside]] == values[inside]
        found = []
        for i, (digest, is_known) in enumerate(zip(digests, known.tolist())):
            if is_known or digest in self._recent:
                found.append(i)
            self._recent.add(digest)
        if len(self._recent) >= _BUFFER:
            recent = np.fromiter(self._recent, np.uint64, len(self._recent))
            self._sorted = np.union1d(self._sorted, recent)
            self._recent = set()
        return found
