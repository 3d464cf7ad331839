"""Records hold google-research/albert's columns and come back as they were written."""

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline import features

SCHEMA = features.pretraining_schema(6, 2)


def columns(**changes):
    arrays = {feature.name: np.array([1, 2]) for feature in SCHEMA}
    arrays.update(masked_lm_weights=np.array([1.0, 0.5]), next_sentence_labels=np.array([1]))
    return {**arrays, **changes}


def test_names_types_and_lengths_are_the_references():
    example = tf.train.Example.FromString(features.encode(SCHEMA, columns()))
    found = {
        name: (value.WhichOneof("kind"), len(getattr(value, value.WhichOneof("kind")).value))
        for name, value in example.features.feature.items()
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


def test_round_trip_pads_with_zeros_and_casts_to_int32():
    serialized = features.encode(SCHEMA, columns())
    one = features.parse(SCHEMA, tf.constant(serialized))
    many = features.parse(SCHEMA, tf.constant([serialized, serialized]))
    assert one["input_ids"].dtype == tf.int32 and one["masked_lm_weights"].dtype == tf.float32
    assert one["input_ids"].numpy().tolist() == [1, 2, 0, 0, 0, 0]
    assert one["masked_lm_weights"].numpy().tolist() == [1.0, 0.5]
    assert many["next_sentence_labels"].numpy().tolist() == [[1], [1]]


def test_bytes_are_a_function_of_the_content():
    backwards = dict(reversed(list(columns().items())))
    assert features.encode(SCHEMA, columns()) == features.encode(SCHEMA, backwards)


def test_wrong_columns_are_refused():
    with pytest.raises(ValueError, match="3 values, at most 2"):
        features.encode(SCHEMA, columns(masked_lm_ids=np.arange(3)))
    with pytest.raises(ValueError, match="columns should be"):
        features.encode(SCHEMA, columns(extra=np.arange(1)))


def test_description_names_every_column():
    text = features.describe(SCHEMA)
    assert all(feature.name in text for feature in SCHEMA)
