"""Reads the lines of a corpus file: decompressed, Parquet as jsonl, or refused as not text.

The file type is detected from the first bytes; only compression depends on the file name as well.
The layers of the stream, from the file up; each is added only where it is needed:

    _Counted          counts the bytes of the file, since progress is reported in stored bytes
    BufferedReader    lets the first bytes be examined and read again
    gzip, bz2, ...    chosen by the file extension
    BufferedReader    lets the beginning of the decompressed text be examined
    Chunks            for old Macintosh files, whose lines end with carriage returns
"""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from data_pipeline.corpus.parquet import MAGIC, Chunks, JsonLines
from data_pipeline.errors import UserError
from data_pipeline.files import storage

# Text bytes per stored byte, roughly.
_COMPRESSION = {".gz": 3, ".bz2": 4, ".xz": 4, ".zst": 3.5}
_PARQUET_RATIO = 2.5
_BUFFER_BYTES = 1 << 20
_HEAD_BYTES = 1 << 16
# What files that are not text are, and how they begin.
_NO_TEXT: dict[str, bytes | tuple[bytes, ...]] = {
    "a zip archive (or a document of an office program)": b"PK\x03\x04",
    "a zip archive": b"PK\x05\x06",
    "a PDF document": b"%PDF-",
    "an RTF document": b"{\\rtf",
    "a document of an office program": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    "a picture": (b"\x89PNG", b"\xff\xd8\xff", b"GIF89a"),
    "an SQLite data base": b"SQLite format 3\0",
    "an Arrow file": b"ARROW1\0\0",
    "an Arrow stream or other binary data": b"\xff\xff\xff\xff",
    "an Avro file": b"Obj\x01",
    "an HDF5 file": b"\x89HDF",
    "a NumPy array": b"\x93NUMPY",
    "a program": b"\x7fELF",
    "a Python pickle": (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
    "a 7z archive": b"7z\xbc\xaf\x27\x1c",
    "a rar archive": b"Rar!\x1a",
}
_COMPRESSED = {
    b"\x1f\x8b": ".gz",
    b"BZh91AY&SY": ".bz2",
    b"\xfd7zXZ\0": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
}
_TAR_MARK, _TAR_PLACE = b"ustar", 257
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def compression(path: str) -> str:
    """The extension of a compressed file; "" for any other."""
    extension = os.path.splitext(path)[1]
    return extension if extension in _COMPRESSION else ""


def text_bytes(path: str, stored_bytes: int) -> float:
    """Bytes of text in a file of `stored_bytes` bytes; an estimate for compressed files."""
    ratio = _PARQUET_RATIO if path.endswith(".parquet") else _COMPRESSION.get(compression(path), 1)
    return stored_bytes * ratio


class _Counted(io.RawIOBase):
    """A file that counts the bytes read from it."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._file = storage.open_file(path, "rb")
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._file.seek(offset, whence)
        return self._file.tell()

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _zstd_frames(raw: io.BufferedReader[Any]) -> Iterator[bytes]:
    """The content of a zstd file; tools that compress in parallel write many frames."""
    import zstandard

    # Not its stream_reader, which accepts a truncated frame as complete.
    frame = None
    while data := (frame and frame.unused_data) or raw.read(_HEAD_BYTES):
        if frame is None or frame.eof:
            frame = zstandard.ZstdDecompressor().decompressobj()
        yield frame.decompress(data)
    if frame and not frame.eof:
        raise EOFError("it ends inside a frame")


_OPEN: dict[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": lambda raw: Chunks(_zstd_frames(raw)),
}


def _decompression_errors(extension: str) -> tuple[type[Exception], ...]:
    errors = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
    if extension == ".bz2":
        return (*errors, OSError)  # BZ2File raises a plain OSError for bad data.
    if extension == ".zst":
        import zstandard

        return (*errors, zstandard.ZstdError)
    return errors


def _check_is_text(path: str, head: bytes, extension: str) -> None:
    """Raises UserError when a file's first bytes show that it is something else."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError(f"{path} is UTF-16; convert it to UTF-8.")
    if head.startswith(MAGIC):
        raise UserError(f"{path} contains a compressed Parquet file; decompress it first.")
    for start, found in _COMPRESSED.items():
        if head.startswith(start):
            again = f" inside {extension}" if extension else ""
            raise UserError(
                f"{path} contains compressed data{again}; rename it to end in {found}, or "
                "decompress it first."
            )
    kinds = [kind for kind, start in _NO_TEXT.items() if head.startswith(start)]
    if head[_TAR_PLACE:].startswith(_TAR_MARK):
        kinds.append("a tar archive")
    if kinds:
        raise UserError(
            f"{path} is {kinds[0]}, not text; give text, jsonl or Parquet files (docs/data.md)."
        )


class Reader:
    """The lines of one file, in bytes, one at a time or many at once; use as a context manager. The
    rows of a Parquet file become lines of jsonl with the values of the column `text_field`. A file
    that is UTF-16, damaged or not text is a UserError; damage is detected while reading.
    """

    def __init__(self, path: str, text_field: str = "text") -> None:
        self.path = path
        self._extension = compression(path)
        self._raw = _Counted(path)
        self._taken = 0
        self._stream, self._parquet = self._opened(text_field)
        # Bytes that were read ahead, and how many of them have been returned.
        self._ahead = self._read(len(_BYTE_ORDER_MARK)).removeprefix(_BYTE_ORDER_MARK)
        self._place = 0

    def _opened(self, text_field: str) -> tuple[io.BufferedReader[Any], JsonLines | None]:
        """The text as a stream, and the Parquet file that it is made from, if it is."""
        stream: io.BufferedReader[Any] = io.BufferedReader(self._raw, _BUFFER_BYTES)
        if not self._extension and _is_parquet(self.path, stream):
            stream.detach()  # Otherwise it closes the file when it is garbage-collected.
            parquet = JsonLines(self._raw, self.path, text_field)
            return io.BufferedReader(parquet, _BUFFER_BYTES), parquet
        if self._extension:
            # Buffered again, so that as much text can be peeked at as in an uncompressed file.
            stream = io.BufferedReader(_OPEN[self._extension](stream), _BUFFER_BYTES)
        with self._explained():
            head = stream.peek(_HEAD_BYTES)[:_HEAD_BYTES]
        _check_is_text(self.path, head, self._extension)
        if b"\r" in head and b"\n" not in head:
            blocks = iter(functools.partial(stream.read, _BUFFER_BYTES), b"")
            lines = Chunks(block.replace(b"\r", b"\n") for block in blocks)
            stream = io.BufferedReader(lines, _BUFFER_BYTES)
        return stream, None

    @property
    def is_parquet(self) -> bool:
        """Whether the lines are made from the rows of a Parquet file."""
        return self._parquet is not None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *unused_error) -> None:
        self._stream.close()
        self._raw.close()  # GzipFile and similar classes leave it open.

    def take_stored_bytes(self) -> int:
        """Stored bytes read since the last call."""
        count = self._raw.count
        if self._parquet is not None:  # Only one column of the file is read.
            count = int(self._parquet.share_read * storage.size(self.path))
        taken, self._taken = self._taken, count
        return self._taken - taken

    def read_line(self, limit: int) -> bytes:
        """The next line with its line end, or `limit` bytes of it; b"" at the end of the file."""
        stop = self._place + limit
        end = self._ahead.find(b"\n", self._place, stop) + 1 or min(stop, len(self._ahead))
        line, self._place = self._ahead[self._place : end], end
        if not line.endswith(b"\n") and len(line) < limit:
            with self._explained():
                line += self._stream.readline(limit - len(line))
        return line

    def read_lines(self, size: int, limit: int) -> bytes:
        """Many whole lines at once, about `size` bytes, up to the first line of `limit` bytes or
        more; b"" when the next line is that long, or longer than `size`.

            text b"ab\\ncd\\nefghij\\nk", size 13, limit 6 -> b"ab\\ncd\\n"; b"efghij\\n" comes next
        """
        ahead = self._ahead[self._place :]
        ahead += self._read(max(0, size - len(ahead)))
        ends = np.flatnonzero(np.frombuffer(ahead, np.uint8) == ord("\n")) + 1
        # b"ab\ncd\nefghij\n": ends [3, 6, 13], lengths [3, 3, 7].
        too_long = np.flatnonzero(np.diff(ends, prepend=0) >= limit)
        whole = ends[: too_long[0]] if len(too_long) else ends
        end = int(whole[-1]) if len(whole) else 0
        self._ahead, self._place = ahead[end:], 0
        return ahead[:end]

    def _read(self, size: int) -> bytes:
        """The next `size` bytes of the stream; fewer only at the end of the file."""
        with self._explained():
            return self._stream.read(size)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """A context in which errors of decompression become UserErrors that name the file."""
        try:
            yield
        except _decompression_errors(self._extension) as error:
            kind = {".gz": "gzip", ".zst": "zstd"}.get(self._extension, self._extension[1:])
            raise UserError(f"{self.path} is not a complete {kind} file: {error}.") from error


def _is_parquet(path: str, stream: io.BufferedReader[Any]) -> bool:
    """Whether a file begins like a Parquet file; UserError if only its name says that it is one."""
    found = stream.peek(len(MAGIC)).startswith(MAGIC)
    if path.endswith(".parquet") and not found:
        raise UserError(f"{path} is not a Parquet file, despite its name.")
    return found
