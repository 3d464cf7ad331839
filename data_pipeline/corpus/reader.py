"""Reads the lines of a corpus file, one at a time or many at once."""

from __future__ import annotations

import numpy as np

from data_pipeline.corpus.streams import TextStream

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Reader(TextStream):
    """The lines of a file; use as a context manager. For arguments and errors see `TextStream`."""

    def __init__(self, path: str, text_field: str = "text") -> None:
        super().__init__(path, text_field)
        # Bytes that were read ahead, and how many of them have been returned.
        self._ahead = self.read(len(_BYTE_ORDER_MARK)).removeprefix(_BYTE_ORDER_MARK)
        self._place = 0

    def read_line(self, limit: int) -> bytes:
        """The next line with its line end, or `limit` bytes of it; b"" at the end of the file."""
        stop = self._place + limit
        end = self._ahead.find(b"\n", self._place, stop) + 1 or min(stop, len(self._ahead))
        line, self._place = self._ahead[self._place : end], end
        if not line.endswith(b"\n") and len(line) < limit:
            line += self.readline(limit - len(line))
        return line

    def read_lines(self, size: int, limit: int) -> bytes:
        """Many whole lines at once, about `size` bytes, up to the first line of `limit` bytes or
        more; b"" when the next line is that long, or longer than `size`.

            text b"ab\\ncd\\nefghij\\nk", size 13, limit 6 -> b"ab\\ncd\\n"; b"efghij\\n" comes next
        """
        ahead = self._ahead[self._place :]
        ahead += self.read(max(0, size - len(ahead)))
        ends = np.flatnonzero(np.frombuffer(ahead, np.uint8) == ord("\n")) + 1
        # b"ab\ncd\nefghij\n": ends [3, 6, 13], lengths [3, 3, 7].
        too_long = np.flatnonzero(np.diff(ends, prepend=0) >= limit)
        whole = ends[: too_long[0]] if len(too_long) else ends
        end = int(whole[-1]) if len(whole) else 0
        self._ahead, self._place = ahead[end:], 0
        return ahead[:end]
