"""The one schema of every record: name, dtype, length; how it is written, read and described.

Names and types are google-research/albert's, so records of either program can be read by the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Feature:
    """One column of a record: int64 or float32 values of fixed length, zero-padded."""

    name: str
    dtype: str
    length: int
    meaning: str


Schema = Sequence[Feature]


def pretraining_schema(max_seq_length: int, max_predictions: int) -> Schema:
    """The columns of pre-training records for S = max_seq_length, P = max_predictions."""
    s, p = max_seq_length, max_predictions
    return (
        Feature("input_ids", "int64", s, "[CLS] A [SEP] B [SEP], with masks"),
        Feature("input_mask", "int64", s, "1 for tokens, 0 for padding"),
        Feature("segment_ids", "int64", s, "0 up to the first [SEP], 1 after it"),
        Feature("token_boundary", "int64", s, "1 where a word starts and at special pieces"),
        Feature("masked_lm_positions", "int64", p, "positions to predict, ascending"),
        Feature("masked_lm_ids", "int64", p, "what stood there"),
        Feature("masked_lm_weights", "float32", p, "1 for predictions, 0 for padding"),
        Feature("next_sentence_labels", "int64", 1, "0: A then B; 1: swapped (or random B)"),
    )


def _encode_column(feature: Feature, values: np.ndarray) -> tf.train.Feature:
    if len(values) > feature.length:
        raise ValueError(f"{feature.name} holds {len(values)} values, at most {feature.length} fit")
    padded = np.zeros(feature.length, np.float32 if feature.dtype == "float32" else np.int64)
    padded[: len(values)] = values
    if feature.dtype == "float32":
        return tf.train.Feature(float_list=tf.train.FloatList(value=padded.tolist()))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=padded.tolist()))


def encode(schema: Schema, arrays: Mapping[str, np.ndarray]) -> bytes:
    """A serialized tf.train.Example; arrays shorter than the schema's length are zero-padded.

    Raises:
      ValueError: a column is missing, unknown or too long.
    """
    names = {feature.name for feature in schema}
    if names != set(arrays):
        raise ValueError(f"columns should be {sorted(names)}, received {sorted(arrays)}")
    columns = {feature.name: _encode_column(feature, arrays[feature.name]) for feature in schema}
    return tf.train.Example(features=tf.train.Features(feature=columns)).SerializeToString(
        deterministic=True
    )


def parse(schema: Schema, serialized: tf.Tensor) -> dict[str, tf.Tensor]:
    """Columns of one record (serialized a scalar: [length]) or of many ([B]: [B, length]).

    Integers come back as int32, which TPUs need.
    """
    spec = {
        feature.name: tf.io.FixedLenFeature([feature.length], getattr(tf, feature.dtype))
        for feature in schema
    }
    columns = tf.io.parse_example(serialized, spec)
    return {
        name: tf.cast(values, tf.int32) if values.dtype == tf.int64 else values
        for name, values in columns.items()
    }


def describe(schema: Schema) -> str:
    """One line per column, for people."""
    return "\n".join(
        f"{feature.name:22} {feature.dtype:8} [{feature.length}]  {feature.meaning}"
        for feature in schema
    )
