"""Encodes arrays as serialized tf.train.Examples and TFRecord frames, without TensorFlow.

Many records are encoded at once. The bytes are those of tf.train.Example and TFRecordWriter, which
a test compares.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

_MASK_DELTA = 0xA282EAD8  # TFRecord masks checksums with this number.
_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")


class Column(NamedTuple):
    """One feature of R records: the packed values of its lists."""

    kind: str  # "int64" or "float32".
    payload: bytes  # The values of all records, one record after the other.
    ends: np.ndarray  # int64 [R], the end of each record in `payload`.


def float_column(values: np.ndarray, row_ends: np.ndarray | None = None) -> Column:
    """A feature of float32; for the arguments see `int_column`."""
    if row_ends is None:
        row_ends = values.shape[1] * np.arange(1, len(values) + 1)
    payload = np.ascontiguousarray(values, "<f4").tobytes()
    return Column("float32", payload, 4 * row_ends)


def int_column(values: np.ndarray, row_ends: np.ndarray | None = None) -> Column:
    """A feature of integers from 0 to 2^28 - 1, encoded as varints; other numbers are a ValueError.
    `values` are [R, n], or [T] with `row_ends` [R], the end of each record in them.

        values [5, 300], row_ends [1, 2] -> payload 05 ac 02 (300 = 0x2c + 128 * 2), ends [1, 3]
    """
    if row_ends is None:
        row_ends = values.shape[1] * np.arange(1, len(values) + 1)
        values = values.reshape(-1)
    top = int(values.max(initial=0))
    if top >> 28 or values.min(initial=0) < 0:
        raise ValueError(f"values should lie in 0..2^28 - 1, received {values.min()}..{top}")
    if top < 1 << 7:
        return Column("int64", values.astype(np.uint8).tobytes(), row_ends)
    # Seven bits per byte, lowest first; the eighth bit says that another byte follows. All values
    # are first encoded in four bytes each, all at once in NumPy; then unused bytes are dropped.
    rest = values.astype("<u4")
    encoded = rest & 127
    size = np.ones(len(values), np.int64)
    for byte in range(1, 4):
        if not top >> (7 * byte):
            break
        follows = rest >> np.uint32(7 * byte) > 0
        encoded |= ((rest >> np.uint32(7 * byte)) & 127) << np.uint32(8 * byte)
        encoded |= follows.astype(np.uint32) << np.uint32(8 * byte - 1)
        size += follows
    is_used = np.arange(4) < size[:, None]
    payload = encoded.view(np.uint8).reshape(-1, 4)[is_used].tobytes()
    sizes_before = np.concatenate([[0], np.cumsum(size)])
    return Column("int64", payload, sizes_before[row_ends])


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


@functools.lru_cache(maxsize=1 << 14)  # Payloads have few sizes, so most calls are hits.
def _entry_header(name: str, kind: str, payload_bytes: int) -> bytes:
    """The bytes before the values in an entry of the feature map."""
    # Field 1 of the list: packed values; field 2 or 3 of the feature: float or int64 list.
    packed = b"\n" + _varint(payload_bytes)
    list_bytes = len(packed) + payload_bytes
    feature = (b"\x12" if kind == "float32" else b"\x1a") + _varint(list_bytes)
    feature_bytes = len(feature) + list_bytes
    key = b"\n" + _varint(len(name)) + name.encode("utf-8")
    value = b"\x12" + _varint(feature_bytes)
    entry_bytes = len(key) + len(value) + feature_bytes
    return b"\n" + _varint(entry_bytes) + key + value + feature + packed


_size = functools.lru_cache(maxsize=1 << 14)(_varint)


def encode_examples(columns: Mapping[str, Column]) -> Iterator[bytes]:
    """Serialized tf.train.Examples with features in the order of their names."""
    names = sorted(columns)
    payloads = [columns[name].payload for name in names]
    kinds = [columns[name].kind for name in names]
    ends = np.stack([columns[name].ends for name in names], axis=1).tolist()
    starts = [0] * len(names)
    for row_ends in ends:
        parts = []
        for name, kind, payload, start, end in zip(names, kinds, payloads, starts, row_ends):
            parts.append(_entry_header(name, kind, end - start))
            parts.append(payload[start:end])
        features = b"".join(parts)
        yield b"\n" + _size(len(features)) + features
        starts = row_ends


def _masked_checksum(content: bytes) -> int:
    # Imported here, because machines that only make columns may not have it.
    import google_crc32c

    checksum = google_crc32c.value(content)
    return ((checksum >> 15 | checksum << 17) + _MASK_DELTA) & 0xFFFFFFFF


@functools.lru_cache(maxsize=1 << 14)
def _frame_header(length: int) -> bytes:
    return _HEADER.pack(length, _masked_checksum(struct.pack("<Q", length)))


def frame(record: bytes) -> bytes:
    """A record with its header and checksums, as in a TFRecord file."""
    return b"".join((_frame_header(len(record)), record, _CHECKSUM.pack(_masked_checksum(record))))
