"""Writes any dataset of pre-training examples as records like those of create_pretraining_data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from data_pipeline.errors import UserError
from data_pipeline.files import lock
from data_pipeline.pretraining.columns import RecordColumns, dynamic_counts, static_counts
from data_pipeline.pretraining.manifest import extra_files, manifest_fields
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.statistics import RecordStatistics
from data_pipeline.records import example_bytes, features, record_folder
from data_pipeline.tokenizers.base import Tokenizer

_AT_ONCE = 512


@lock.locks("output_dir")
def write_records(
    dataset: tf.data.Dataset,
    output_dir: str,
    tokenizer: Tokenizer,
    settings: PretrainingSettings,
    *,
    records_per_file: int = 16_384,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Writes sharded TFRecords with a manifest, vocabulary and statistics.

    Records are in the order of the dataset; equal datasets give equal bytes. The folder is not data
    until all of it is written. After an interruption, the next call writes everything again; if the
    interrupted call was already publishing files, it completes that, as for any finished data.

    Args:
      dataset: single examples with the columns of `features.pretraining_schema`, as from
        `without_records.dataset.pretraining_examples`; integers of any size, variable lengths
        padded with zeros or not.
      output_dir: folder to write.
      tokenizer: the tokenizer that made the ids.
      settings: the settings of the examples; masking, lengths and sentence objective determine how
        the records are read.
      records_per_file: number of records per file; the last file holds the rest.
      overwrite: replace finished data in `output_dir`.

    Returns:
      The manifest.

    Raises:
      UserError: columns or values that do not fit the settings, no examples, or a folder with data;
        then nothing that a reader would accept is left behind.
    """
    settings.check_no_run_is_needed()
    schema = features.pretraining_schema(
        settings.masking, settings.max_seq_length, settings.max_predictions_per_seq
    )
    # Checked first, so that a wrong dataset does not change the folder or its content.
    _check_columns(dataset, schema)
    # An earlier call may have been interrupted while publishing files: its data are finished.
    record_folder.complete_commit(output_dir)
    record_folder.check_output_dir(output_dir, overwrite)
    with record_folder.making(output_dir) as folder:
        statistics = RecordStatistics(tokenizer.vocab_size)
        frames = _frames(dataset, schema, settings, tokenizer, statistics)
        files = list(record_folder.write_shards(frames, folder, "pretraining", records_per_file))
        if not files:
            raise UserError("The dataset holds no example, so there is no record to write.")
        manifest = {
            **manifest_fields(files, settings, tokenizer),
            "seed": settings.seed,
            "settings": settings.to_manifest(),
            "corpus": {"problems": {}, "problem_examples": []},
            "statistics": statistics.summary(tokenizer.pieces),
        }
        small_files = extra_files(tokenizer, statistics)
    return record_folder.commit(output_dir, manifest, small_files)


def _check_columns(dataset: tf.data.Dataset, schema: features.Schema) -> None:
    """Raises UserError unless the dataset has exactly the schema's columns, with valid types."""
    spec = dataset.element_spec
    found = set(spec) if isinstance(spec, dict) else set()
    expected = {feature.name for feature in schema}
    if found != expected:
        raise UserError(
            f"The dataset's elements should be dicts of {', '.join(sorted(expected))}; missing: "
            f"{', '.join(sorted(expected - found)) or 'none'}; unknown: "
            f"{', '.join(sorted(map(str, found - expected))) or 'none'}."
        )
    for feature in schema:
        column = spec[feature.name]
        is_kind = (
            column.dtype.is_floating
            if feature.dtype == "float32"
            else (column.dtype.is_integer or column.dtype.is_bool)
        )
        if not is_kind or column.shape.rank not in (0, 1, None):
            raise UserError(
                f"The column {feature.name} should hold {feature.dtype} "
                f"[{feature.length or 'any'}] of a single example; received {column}."
            )


class _Column(NamedTuple):
    """Concatenated values of R examples, and the number of values of each (int64 [R])."""

    values: np.ndarray
    lengths: np.ndarray


def _rows(batch: tf.Tensor | tf.RaggedTensor) -> tuple[np.ndarray, np.ndarray]:
    """Values [R, n], padded with zeros, and the number of values of each example (int64 [R])."""
    if isinstance(batch, tf.RaggedTensor):
        return batch.to_tensor().numpy(), batch.row_lengths().numpy()
    rows = batch.numpy().reshape(len(batch), -1)
    return rows, np.full(len(rows), rows.shape[1])


def _columns(
    batch: Mapping[str, tf.Tensor | tf.RaggedTensor], schema: features.Schema, before: int
) -> dict[str, _Column]:
    """The columns of a batch; in columns of variable length, zeros after the last id are removed.
    Zeros before the last id, or a different number of boundaries, are a UserError.
    """
    found = {feature.name: _rows(batch[feature.name]) for feature in schema}
    columns = {
        name: _Column(rows[np.arange(rows.shape[1]) < lengths[:, None]], lengths)
        for name, (rows, lengths) in found.items()
    }
    if "token_ids" not in found:
        return columns
    (ids, sizes), (boundary, boundary_sizes) = found["token_ids"], found["token_boundary"]
    # Id 0 is padding and never in text: `pretraining_examples` rejects other vocabularies.
    lengths = np.count_nonzero(ids, axis=1)
    is_id = np.arange(ids.shape[1]) < lengths[:, None]
    wrong = np.flatnonzero((sizes != boundary_sizes) | ((ids > 0) != is_id).any(axis=1))
    if len(wrong):
        raise UserError(
            f"Example {before + wrong[0] + 1}: token_ids and token_boundary should have one value "
            "for each token, followed only by zeros."
        )
    return {
        **columns,
        "token_ids": _Column(ids[is_id], lengths),
        "token_boundary": _Column(boundary[is_id], lengths),
    }


def _check_values(
    columns: Mapping[str, _Column],
    schema: features.Schema,
    settings: PretrainingSettings,
    vocab_size: int,
    before: int,
) -> None:
    """Raises UserError for the first value in a batch that no reader could use; `before` is the
    number of examples before the batch.
    """
    ids = ("token_ids", "input_ids", "masked_lm_ids")
    limits = {
        **dict.fromkeys(ids, vocab_size),
        "masked_lm_positions": settings.max_seq_length,
        "num_tokens_a": settings.max_record_tokens + 1,  # A may be the whole record.
        "token_boundary": 3 if settings.segments == "dynamic" else 2,  # 2: a sentence starts.
    }
    for feature in schema:
        values, lengths = columns[feature.name]
        low = high = feature.length
        if feature.length == features.VARIABLE:
            low, high = 1, settings.max_record_tokens
        wrong = np.flatnonzero((lengths < low) | (lengths > high))
        if len(wrong):
            wanted = f"{low}" if low == high else f"{low} to {high}"
            raise UserError(
                f"Example {before + wrong[0] + 1}: {feature.name} should have {wanted} value(s), "
                f"but has {lengths[wrong[0]]}. Were the examples made with the same "
                "settings?"
            )
        limit = limits.get(feature.name, 2)  # Masks, types, labels, weights.
        wrong = np.flatnonzero(~((values >= 0) & (values < limit)))  # Includes NaN.
        if len(wrong):
            example = np.searchsorted(np.cumsum(lengths), wrong[0], side="right")
            raise UserError(
                f"Example {before + example + 1}: {feature.name} has {values[wrong[0]]}, but "
                f"should have 0 to {limit - 1}. Were the examples made with the same "
                "vocabulary and settings?"
            )
    if settings.masking == "dynamic":
        _check_first_segments(columns, settings, before)


def _check_first_segments(
    columns: Mapping[str, _Column], settings: PretrainingSettings, before: int
) -> None:
    """Raises UserError for the first example whose first segment has an impossible length."""
    sizes, lengths = columns["num_tokens_a"].values, columns["token_ids"].lengths
    is_alone = settings.sentence_objective == "none" or settings.segments == "dynamic"
    low = lengths if is_alone else np.ones_like(lengths)
    wrong = np.flatnonzero((sizes < low) | (sizes > lengths))
    if len(wrong):
        first = wrong[0]
        wanted = f"{lengths[first]}" if low[first] == lengths[first] else f"1 to {lengths[first]}"
        raise UserError(
            f"Example {before + first + 1}: num_tokens_a is {sizes[first]}, but should be "
            f"{wanted}, as token_ids has {lengths[first]} tokens and the sentence objective is "
            f"{settings.sentence_objective!r}, with {settings.segments} segments."
        )


def _counts(
    columns: Mapping[str, _Column], settings: PretrainingSettings, tokenizer: Tokenizer
) -> RecordColumns:
    """The counts of a batch for the statistics."""
    if settings.masking == "static":
        arrays = {
            name: values.reshape(len(lengths), -1) for name, (values, lengths) in columns.items()
        }
        return static_counts(arrays, tokenizer.vocab_size)
    ids, lengths = columns["token_ids"]
    return dynamic_counts(
        ids,
        columns["num_tokens_a"].values,
        lengths,
        columns["next_sentence_labels"].values,
        settings,
        tokenizer,
    )


def _frames(
    dataset: tf.data.Dataset,
    schema: features.Schema,
    settings: PretrainingSettings,
    tokenizer: Tokenizer,
    statistics: RecordStatistics,
) -> Iterator[bytes]:
    """Yields examples as TFRecord frames, and adds them to `statistics`."""
    for batch in dataset.ragged_batch(_AT_ONCE):  # Lengths may differ.
        before = statistics.records["records"]
        columns = _columns(batch, schema, before)
        _check_values(columns, schema, settings, tokenizer.vocab_size, before)
        statistics.add_records(_counts(columns, settings, tokenizer))
        encoded = {}
        for feature in schema:
            values, lengths = columns[feature.name]
            is_float = feature.dtype == "float32"
            encode = example_bytes.float_column if is_float else example_bytes.int_column
            encoded[feature.name] = encode(values, np.cumsum(lengths))
        yield from map(example_bytes.frame, example_bytes.encode_examples(encoded))
