"""Reads the text of a Parquet file, the format of data sets on the Hugging Face hub, as jsonl, so
that all code after the reader treats both formats alike.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from data_pipeline.errors import UserError, message_of, needs_extra

if TYPE_CHECKING:
    import pyarrow

MAGIC = b"PAR1"
_ROWS_AT_ONCE = 64  # Few: a row may be a whole book.
_BUFFER_BYTES = 1 << 20


def _is_text(pyarrow: ModuleType, kind: pyarrow.DataType) -> bool:
    types = pyarrow.types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind)


class Chunks(io.RawIOBase):
    """Chunks of bytes as one stream."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks, self._rest = chunks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)  # Slicing it does not copy.
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


class JsonLines(Chunks):
    """A Parquet file, which must be seekable, as a stream of lines {"text": ...}. Row groups are
    read one after the other, and only their text column. A damaged file is a UserError, at whatever
    point the damage is found.
    """

    def __init__(self, file: io.RawIOBase, path: str, text_field: str) -> None:
        super().__init__(self._jsonl())
        self._path, self._field = path, text_field
        self._rows = 0
        with needs_extra("parquet", f"{path} is a Parquet file, which"):
            import pyarrow
            import pyarrow.parquet
        self._arrow = pyarrow
        self._errors = (pyarrow.ArrowException, OSError)
        try:
            # pre_buffer would read the column's whole row group, often 100 MB, at once.
            self._file = pyarrow.parquet.ParquetFile(
                file, pre_buffer=False, buffer_size=_BUFFER_BYTES
            )
        except self._errors as error:
            raise self._damaged(error) from None
        schema = self._file.schema_arrow
        texts = [column.name for column in schema if _is_text(pyarrow, column.type)]
        if text_field not in texts:
            kinds = [str(column.type) for column in schema if column.name == text_field]
            found = f"holds {kinds[0]}, not text" if kinds else "does not exist"
            raise UserError(
                f"{path}: the column {text_field!r} (--text_field) {found}; columns with text: "
                f"{', '.join(texts) or 'none'}."
            )

    def _damaged(self, error: Exception) -> UserError:
        return UserError(f"{self._path} is not a complete Parquet file: {message_of(error)}")

    def _texts(self, column: pyarrow.Array) -> list[str | None]:
        """The values of some rows; bytes that are not UTF-8 are kept as unpaired surrogates."""
        # In the lines of jsonl these become the same bytes again, repaired and reported as in text.
        with contextlib.suppress(UnicodeDecodeError):
            return column.to_pylist()
        if self._arrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        return [
            None if text is None else text.decode("utf-8", "surrogateescape")
            for text in column.cast(self._arrow.large_binary()).to_pylist()
        ]

    def _jsonl(self) -> Iterator[bytes]:
        """Lines of jsonl, _ROWS_AT_ONCE at a time."""
        try:
            for batch in self._file.iter_batches(_ROWS_AT_ONCE, columns=[self._field]):
                self._rows += len(batch)
                yield b"".join(
                    json.dumps({self._field: text}, ensure_ascii=False).encode(
                        "utf-8", "surrogateescape"
                    )
                    + b"\n"
                    for text in self._texts(batch.column(0))
                )
        except self._errors as error:
            raise self._damaged(error) from None

    @property
    def share_read(self) -> float:
        """Share of the rows that have been read."""
        return self._rows / max(1, self._file.metadata.num_rows)
