"""Bytes of numbers, examples and frames, spelled out; features_test.py compares TensorFlow's."""

import struct

import numpy as np
import pytest

from data_pipeline.records.example_bytes import encode_examples, float_column, frame, int_column


@pytest.mark.parametrize(
    "number, encoded",
    [
        (0, "00"), (1, "01"), (127, "7f"), (128, "80 01"), (300, "ac 02"), (16_383, "ff 7f"),
        (16_384, "80 80 01"), (2_097_151, "ff ff 7f"), (2_097_152, "80 80 80 01"),
        ((1 << 28) - 1, "ff ff ff 7f"),
    ],
)  # fmt: skip
def test_numbers_have_seven_bits_to_a_byte(number, encoded):
    column = int_column(np.array([[number]]))
    assert (column.kind, column.payload.hex(" ")) == ("int64", encoded)
    assert column.ends.tolist() == [len(column.payload)]
    beside = int_column(np.array([[5, number], [number, (1 << 28) - 1]]))  # Of other lengths.
    assert beside.payload.hex(" ") == f"05 {encoded} {encoded} ff ff ff 7f"
    assert beside.ends.tolist() == [1 + len(column.payload), 5 + 2 * len(column.payload)]


def test_rows_of_any_length():
    column = int_column(np.array([1, 2, 3]), np.array([2, 2, 3]))
    assert column.payload == b"\1\2\3" and column.ends.tolist() == [2, 2, 3]
    column = int_column(np.array([1, 300, 3]), np.array([0, 2, 3]))
    assert column.payload == b"\1\xac\2\3" and column.ends.tolist() == [0, 3, 4]
    assert int_column(np.zeros(0, np.int64), np.array([0, 0])).ends.tolist() == [0, 0]


@pytest.mark.parametrize("values", [[[1 << 28]], [[200, -1]]])
def test_numbers_out_of_range_are_refused(values):
    with pytest.raises(ValueError, match=r"values should lie in 0..2\^28 - 1, received "):
        int_column(np.array(values))


def test_an_example_byte_by_byte():
    columns = {"b": float_column(np.array([[1.0]])), "a": int_column(np.array([[7, 300]]))}
    integers = bytes.fromhex("0a 0c 0a 01 61 12 07 1a 05 0a 03 07 ac 02")  # {"a": [7, 300]}
    floats = bytes.fromhex("0a 0d 0a 01 62 12 08 12 06 0a 04 00 00 80 3f")  # {"b": [1.0]}
    assert list(encode_examples(columns)) == [b"\x0a\x1d" + integers + floats]


def crc32c(content):
    """The checksum bit by bit."""
    register = 0xFFFFFFFF
    for byte in content:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def masked(content):
    checksum = crc32c(content)
    rotated = (checksum >> 15 | checksum << 17) & 0xFFFFFFFF
    return struct.pack("<I", (rotated + 0xA282EAD8) % 2**32)


@pytest.mark.parametrize("record", [b"", b"abc", bytes(range(256)) * 2])
def test_frames_hold_length_and_checksums(record):
    assert crc32c(b"123456789") == 0xE3069283  # The polynomial's published check value.
    length = struct.pack("<Q", len(record))
    assert frame(record) == length + masked(length) + record + masked(record)
