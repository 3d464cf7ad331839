"""The schema of pre-training records (name, dtype and length of each column), and its parser.

Static records have the column names and types of google-research/albert and of the Model Garden, so
that each program can read the others' records. Dynamic records hold tokens and word boundaries;
they are masked when they are read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tensorflow as tf

MASKINGS = ("static", "dynamic")
VARIABLE = 0


@dataclasses.dataclass(frozen=True)
class Feature:
    """One column of a record: int64 or float32 values, zero-padded to `length` unless VARIABLE."""

    name: str
    dtype: str
    length: int
    meaning: str


Schema = Sequence[Feature]


def pretraining_schema(masking: str, max_seq_length: int, max_predictions: int) -> Schema:
    """The columns of pre-training records for S = max_seq_length, P = max_predictions."""
    s, p = max_seq_length, max_predictions
    label = Feature("next_sentence_labels", "int64", 1, "0: A then B; 1: swapped (or random B)")
    if masking == "dynamic":
        return (
            Feature("token_ids", "int64", VARIABLE, "A, then B, without special pieces"),
            Feature("token_boundary", "int64", VARIABLE, "1 where a word starts (2: a sentence)"),
            Feature("num_tokens_a", "int64", 1, "length of A"),
            dataclasses.replace(label, meaning="1: random B; the order is drawn in reading"),
        )
    return (
        Feature("input_ids", "int64", s, "[CLS] A [SEP] B [SEP], with masks"),
        Feature("input_mask", "int64", s, "1 for tokens, 0 for padding"),
        Feature("segment_ids", "int64", s, "0 up to the first [SEP], 1 after it"),
        Feature("token_boundary", "int64", s, "1 where a word starts and at special pieces"),
        Feature("masked_lm_positions", "int64", p, "positions to predict, ascending"),
        Feature("masked_lm_ids", "int64", p, "original pieces at these positions"),
        Feature("masked_lm_weights", "float32", p, "1 for predictions, 0 for padding"),
        label,
    )


def readable_schema(masking: str, max_seq_length: int, max_predictions: int) -> Schema:
    """The columns that training reads: all but token_boundary of static records."""
    schema = pretraining_schema(masking, max_seq_length, max_predictions)
    if masking == "dynamic":
        return schema
    # Only masking needs word boundaries, and records of google-research/albert may lack them.
    return tuple(feature for feature in schema if feature.name != "token_boundary")


def question_schema(most_answers: int) -> Schema:
    """The columns that training adds for questions of recurring spans, Q = most_answers."""
    return (
        Feature("span_starts", "int64", most_answers, "first tokens of the answers"),
        Feature("span_ends", "int64", most_answers, "last tokens of the answers"),
        Feature("span_weights", "float32", most_answers, "1 for answers, 0 for padding"),
    )


def schema_of(manifest: Mapping[str, Any]) -> Schema:
    """The columns of the records that a manifest describes."""
    return pretraining_schema(
        manifest["masking"], manifest["max_seq_length"], manifest["max_predictions"]
    )


def parse(schema: Schema, serialized: tf.Tensor) -> dict[str, tf.Tensor | tf.RaggedTensor]:
    """Parses the columns of one record (scalar -> [length]) or of many ([B] -> [B, length]), by
    name. Integers become int32; columns of variable length become RaggedTensors for many records.
    """
    import tensorflow as tf

    def spec(feature: Feature):
        dtype = getattr(tf, feature.dtype)
        if feature.length == VARIABLE:
            return tf.io.RaggedFeature(dtype)
        return tf.io.FixedLenFeature([feature.length], dtype)

    columns = tf.io.parse_example(serialized, {feature.name: spec(feature) for feature in schema})
    # TPUs need int32.
    return {
        name: tf.cast(values, tf.int32) if values.dtype == tf.int64 else values
        for name, values in columns.items()
    }


def schema_text(schema: Schema) -> str:
    """A readable description with one line per column."""
    return "\n".join(
        f"{feature.name:22} {feature.dtype:8} [{feature.length or 'any'}]  {feature.meaning}"
        for feature in schema
    )
