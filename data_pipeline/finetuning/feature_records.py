"""Writes and reads rows of model inputs as records; batches are the same, bit for bit.

A record holds one row of the arrays of `Features.batch`, by name: arrays with an axis of pieces are
stored without padding, their sequences concatenated, and so are the row's targets. The manifest
describes their shapes and padding values.

    input_word_ids [2, 7, 3, 0], input_mask [1, 1, 1, 0], label_ids 1
    -> {"input_word_ids": [2, 7, 3], "input_mask": [1, 1, 1], "label_ids": [1]}
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from data_pipeline.errors import UserError
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.encoded import slice_indices
from data_pipeline.records import example_bytes, record_folder
from data_pipeline.records.features import VARIABLE, Feature, parse

_AT_ONCE = 1024
_RECORDS_PER_FILE = 16_384
_NOT_STORED = ("row_numbers", "example_weights")  # They belong to a batch.


@dataclasses.dataclass(frozen=True)
class RecordColumn:
    """An array in batches, as described in the manifest.

    Attributes:
      name: name of the array, and of the feature in a record.
      dtype: "int32" or "float32".
      shape: the axes between B and L, () or (C,); (C,) for an array [B, C] without pieces; None for
        an array [B].
      fill: the padding value after the last piece of a row; None if the array has no pieces.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    fill: float | None = 0

    @property
    def has_pieces(self) -> bool:
        """Whether the last axis of the array is an axis of pieces."""
        return self.shape is not None and self.fill is not None

    @property
    def feature(self) -> Feature:
        """The column of the records."""
        dtype = "float32" if self.dtype == "float32" else "int64"
        return Feature(self.name, dtype, VARIABLE, "see `Features.batch`")


def columns_of(features: Features) -> list[RecordColumn]:
    """The arrays in the batches of N rows, in order."""

    def column(name: str, values: np.ndarray) -> RecordColumn:
        if values.ndim == 1:
            return RecordColumn(name, values.dtype.name, None)
        if name in features.targets:
            return RecordColumn(name, values.dtype.name, values.shape[1:], None)
        # The last value is padding, unless all rows have full length.
        return RecordColumn(name, values.dtype.name, values.shape[1:-1], values.flat[-1].item())

    shortest = features.batch(np.argmin(features.lengths)[None], features.max_seq_length)
    return [column(name, values) for name, values in shortest.items() if name not in _NOT_STORED]


def write_features(features: Features, folder: str, prefix: str) -> dict[str, Any]:
    """Writes N rows as TFRecord files; returns the manifest fields that `read_features` needs."""
    columns = columns_of(features)
    frames = _frames(features, columns)
    files = list(record_folder.write_shards(frames, folder, prefix, _RECORDS_PER_FILE))
    return {
        "num_records": len(features),
        "max_seq_length": features.max_seq_length,
        "columns": [dataclasses.asdict(column) for column in columns],
        "files": files,
    }


def _frames(features: Features, columns: Sequence[RecordColumn]) -> Iterator[bytes]:
    """Yields each row as the bytes of a TFRecord frame."""
    for start in range(0, len(features), _AT_ONCE):
        rows = np.arange(start, min(start + _AT_ONCE, len(features)))
        lengths = features.lengths[rows]
        batch = features.batch(rows, int(lengths.max()))
        encoded = {}
        for column in columns:
            values = batch[column.name]
            sizes = np.full_like(rows, math.prod(column.shape or ()))
            if column.has_pieces:
                values = values[_is_piece(lengths, values.shape)]
                sizes *= lengths
            is_float = column.feature.dtype == "float32"
            encode = example_bytes.float_column if is_float else example_bytes.int_column
            encoded[column.name] = encode(values.reshape(-1), np.cumsum(sizes))
        yield from map(example_bytes.frame, example_bytes.encode_examples(encoded))


def _is_piece(lengths: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A bool mask [B, ..., L] of this shape, False for the padding of rows of these lengths."""
    mask = np.arange(shape[-1]) < lengths.reshape(-1, *[1] * (len(shape) - 1))
    return np.broadcast_to(mask, shape)


@dataclasses.dataclass(frozen=True, eq=False)
class StoredRows:
    """N rows as stored in records, without padding.

    Attributes:
      columns: the columns with an axis of pieces.
      values: maps names to the concatenated values of all rows, in a small dtype.
      lengths: int64 [N], number of pieces of one sequence of each row.
    """

    columns: Sequence[RecordColumn]
    values: Mapping[str, np.ndarray]
    lengths: np.ndarray

    @functools.cached_property
    def _starts(self) -> np.ndarray:
        """int64 [N], number of pieces before each row, for one sequence per row."""
        return np.cumsum(self.lengths) - self.lengths

    def inputs(self, rows: np.ndarray, length: int) -> dict[str, np.ndarray]:
        """The arrays of the given rows, padded to L; see `Features.inputs`."""
        starts, lengths = self._starts[rows], self.lengths[rows]
        found = {}
        for column in self.columns:
            assert column.shape is not None
            shape, size = (len(rows), *column.shape, length), math.prod(column.shape)
            padded = np.full(shape, column.fill, column.dtype)
            # Assignment by mask fills rows in order, which is also the order of the pieces.
            padded[_is_piece(lengths, shape)] = self.values[column.name][
                slice_indices(starts * size, lengths * size)
            ]
            found[column.name] = padded
        return found


def read_features(manifest: Mapping[str, Any]) -> Features[None]:
    """Reads the rows of a folder of records, which take a few bytes of memory per piece. Records
    that do not match the manifest are a UserError.
    """
    columns = [
        RecordColumn(
            **{**entry, "shape": None if entry["shape"] is None else tuple(entry["shape"])}
        )
        for entry in manifest["columns"]
    ]
    paths = record_folder.record_files(dict(manifest))
    try:
        values, sizes = _read(paths, columns)
    except tf.errors.OpError as error:
        raise record_folder.explain_read_error(
            manifest["directory"], error, record_folder.FINETUNING
        ) from None
    pieces = [column for column in columns if column.has_pieces]
    lengths = sizes[pieces[0].name] // math.prod(pieces[0].shape or ())
    targets = {
        column.name: values[column.name].astype(column.dtype).reshape(-1, *(column.shape or ()))
        for column in columns
        if not column.has_pieces
    }
    if len(lengths) != manifest["num_records"]:
        raise UserError(
            f"{manifest['directory']} should have {manifest['num_records']} records but has "
            f"{len(lengths)}. Make them again with --overwrite."
        )
    stored = StoredRows(pieces, values, lengths)
    return Features(None, stored.inputs, lengths, manifest["max_seq_length"], targets, {})


def _read(
    paths: Sequence[str], columns: Sequence[RecordColumn]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """For each column, the values of all rows, and the number of values per row (int64 [N])."""
    schema = [column.feature for column in columns]
    values: dict[str, list[np.ndarray]] = {column.name: [] for column in columns}
    sizes: dict[str, list[np.ndarray]] = {column.name: [] for column in columns}
    for records in tf.data.TFRecordDataset(list(paths)).batch(_AT_ONCE):
        for name, found in parse(schema, records).items():
            part = found.values.numpy()
            if part.dtype != np.float32:  # Most values are 0 and 1.
                part = part.astype(np.min_scalar_type(part.max(initial=0)))
            values[name].append(part)
            sizes[name].append(found.row_lengths().numpy())
    return (
        # If the batches of a column have different small dtypes, the result has the largest.
        {name: np.concatenate(parts) for name, parts in values.items()},
        {name: np.concatenate(parts) for name, parts in sizes.items()},
    )
