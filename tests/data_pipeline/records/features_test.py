"""Records hold google-research/albert's columns, in the bytes that TensorFlow would write."""

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.records import example_bytes, features

SCHEMA = features.pretraining_schema("static", 6, 2)
DYNAMIC = features.pretraining_schema("dynamic", 6, 2)


def static_columns():
    """Two records; every varint has one to three bytes."""
    rows = np.array([[1, 127, 128, 16_383, 16_384, 29_999], [0, 5, 0, 300, 0, 0]])
    columns = {
        feature.name: example_bytes.int_column(rows[:, : feature.length])
        for feature in SCHEMA
        if feature.dtype == "int64"
    }
    return {
        **columns,
        "masked_lm_weights": example_bytes.float_column(np.array([[1, 0.5], [0, 1]])),
    }


def example(**lists):
    """What TensorFlow writes."""
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                name: tf.train.Feature(float_list=tf.train.FloatList(value=values))
                if name == "masked_lm_weights"
                else tf.train.Feature(int64_list=tf.train.Int64List(value=values))
                for name, values in lists.items()
            }
        )
    ).SerializeToString(deterministic=True)


def test_names_types_and_lengths_are_the_references():
    [serialized, _] = example_bytes.encode_examples(static_columns())
    found = {
        name: (value.WhichOneof("kind"), len(getattr(value, value.WhichOneof("kind")).value))
        for name, value in tf.train.Example.FromString(serialized).features.feature.items()
    }
    assert found == {
        "input_ids": ("int64_list", 6),
        "input_mask": ("int64_list", 6),
        "segment_ids": ("int64_list", 6),
        "token_boundary": ("int64_list", 6),
        "masked_lm_positions": ("int64_list", 2),
        "masked_lm_ids": ("int64_list", 2),
        "masked_lm_weights": ("float_list", 2),
        "next_sentence_labels": ("int64_list", 1),
    }


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, (1 << 28) - 1), max_size=300), min_size=1, max_size=4),
    st.integers(1, 300),
)
def test_bytes_are_those_of_tensorflow(rows, floats):
    ends = np.cumsum([len(row) for row in rows])
    values = np.array([value for row in rows for value in row], np.int64)
    weights = np.arange(len(rows) * floats, dtype=np.float32).reshape(len(rows), floats) / 3
    columns = {
        "z": example_bytes.int_column(values, ends),
        "masked_lm_weights": example_bytes.float_column(weights),
        "a_flag": example_bytes.int_column(values > 7, ends),
    }
    for row, weight, found in zip(rows, weights, example_bytes.encode_examples(columns)):
        if row:  # TensorFlow leaves an empty list without its packed field; both read alike.
            assert found == example(
                z=row, masked_lm_weights=weight, a_flag=[int(value > 7) for value in row]
            )
        read = tf.train.Example.FromString(found).features.feature
        assert list(read["z"].int64_list.value) == row


def test_parsing_gives_int32():
    serialized = list(example_bytes.encode_examples(static_columns()))
    one = features.parse(SCHEMA, tf.constant(serialized[0]))
    many = features.parse(SCHEMA, tf.constant(serialized))
    assert one["input_ids"].dtype == tf.int32 and one["masked_lm_weights"].dtype == tf.float32
    assert one["input_ids"].numpy().tolist() == [1, 127, 128, 16_383, 16_384, 29_999]
    assert many["masked_lm_weights"].numpy().tolist() == [[1.0, 0.5], [0.0, 1.0]]
    assert many["next_sentence_labels"].numpy().tolist() == [[1], [0]]


def test_parsing_of_variable_lengths():
    ends = np.array([3, 4])
    columns = {
        "token_ids": example_bytes.int_column(np.array([5, 600, 7, 8]), ends),
        "token_boundary": example_bytes.int_column(np.array([1, 0, 1, 1]), ends),
        "num_tokens_a": example_bytes.int_column(np.array([[2], [1]])),
        "next_sentence_labels": example_bytes.int_column(np.array([[0], [1]])),
    }
    found = features.parse(DYNAMIC, tf.constant(list(example_bytes.encode_examples(columns))))
    assert found["token_ids"].to_list() == [[5, 600, 7], [8]]
    assert found["token_ids"].dtype == tf.int32
    assert found["num_tokens_a"].numpy().tolist() == [[2], [1]]


def test_training_reads_no_boundaries_of_static_records():
    names = [feature.name for feature in features.readable_schema("static", 6, 2)]
    assert names == [feature.name for feature in SCHEMA if feature.name != "token_boundary"]
    assert features.readable_schema("dynamic", 6, 2) == DYNAMIC


def test_a_manifest_names_the_schema():
    manifest = {"masking": "static", "max_seq_length": 6, "max_predictions": 2}
    assert features.schema_of(manifest) == SCHEMA
    assert features.schema_of({**manifest, "masking": "dynamic"}) == DYNAMIC


def test_a_description_for_people():
    ids, weights = SCHEMA[0], SCHEMA[6]
    assert features.schema_text([ids, DYNAMIC[0], weights]).split("\n") == [
        "input_ids              int64    [6]  [CLS] A [SEP] B [SEP], with masks",
        "token_ids              int64    [any]  A, then B, without special pieces",
        "masked_lm_weights      float32  [2]  1 for predictions, 0 for padding",
    ]
