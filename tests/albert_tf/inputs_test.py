"""Whatever a Keras user gives a model becomes int32 ids, mask and types, or a sentence."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertClassifier, AlbertEncoder, AlbertMultipleChoice, AlbertSpanLabeler
from albert_tf.inputs import complete_inputs
from albert_tf.keras_compat import keras

IDS = [[5, 6, 7], [8, 9, 0]]
MASK = [[1, 1, 1], [1, 1, 0]]
GIVEN = {
    "all, int32": {"input_word_ids": np.int32(IDS), "input_mask": np.int32(MASK)},
    "int64": {"input_word_ids": np.int64(IDS), "input_mask": np.int64(MASK)},
    "a mask of booleans": {"input_word_ids": tf.constant(IDS), "input_mask": np.bool_(MASK)},
    "lists": {"input_word_ids": IDS, "input_mask": MASK},
    "types, too": {"input_word_ids": IDS, "input_mask": MASK, "input_type_ids": np.zeros_like(IDS)},
}


@pytest.fixture
def encoder(tiny_config) -> AlbertEncoder:
    return AlbertEncoder(tiny_config)


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_equal_outputs_for_every_kind(encoder, given):
    expected = encoder(
        {"input_word_ids": tf.constant(IDS), "input_mask": tf.constant(MASK)}
        | {"input_type_ids": tf.zeros([2, 3], tf.int32)}
    )
    np.testing.assert_array_equal(encoder(given)["pooled_output"], expected["pooled_output"])
    arrays = {name: np.array(value) for name, value in given.items()}
    predicted = encoder.predict(arrays, verbose=0)
    np.testing.assert_allclose(predicted["pooled_output"], expected["pooled_output"], atol=1e-6)


@pytest.mark.parametrize("ids", [tf.constant(IDS), np.int64(IDS), IDS], ids=type)
def test_ids_alone_are_all_real(encoder, ids):
    expected = encoder({"input_word_ids": IDS, "input_mask": np.ones_like(IDS)})
    np.testing.assert_array_equal(encoder(ids)["pooled_output"], expected["pooled_output"])


def test_in_a_functional_model(encoder):
    ids = keras.Input([None], dtype=tf.int64)
    model = keras.Model(ids, encoder(ids)["pooled_output"])
    np.testing.assert_allclose(
        model(tf.constant(IDS, tf.int64)), encoder(IDS)["pooled_output"], atol=1e-6
    )


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (
            {"input_ids": IDS},
            "Expected a dict with .* received a dict with input_ids",
        ),
        (tf.constant([1.0]), "received input_word_ids of float32 with the shape"),
        (tf.constant(IDS[0]), r"received input_word_ids of int32 with the shape \(3,\)"),
        ({"input_word_ids": IDS, "input_mask": [[1.0] * 3] * 2}, "received input_mask of float32"),
        (tf.constant([["text"]]), "received input_word_ids of string"),
    ],
)
def test_anything_else_is_a_sentence(given, match):
    with pytest.raises(ValueError, match=match):
        complete_inputs(given)


def test_task_models_complete_their_inputs(tiny_config):
    choices = AlbertMultipleChoice(tiny_config)
    whole = {
        "input_word_ids": [IDS],
        "input_mask": [MASK],
        "input_type_ids": np.zeros([1, 2, 3], int),
    }
    part = {"input_word_ids": np.array([IDS]), "input_mask": np.array([MASK], bool)}
    np.testing.assert_array_equal(choices(whole), choices(part))
    span = AlbertSpanLabeler(tiny_config)
    np.testing.assert_array_equal(
        span(IDS)["start_logits"],
        span({"input_word_ids": IDS, "input_mask": np.ones_like(IDS)})["start_logits"],
    )


def test_a_configuration_as_a_dict_or_by_name(tiny_config):
    fields = tiny_config.to_dict()
    assert AlbertEncoder(fields).config == AlbertEncoder(**fields).config == tiny_config
    assert AlbertClassifier(fields, 3).config == tiny_config
    for arguments in ({}, {"config": tiny_config, "hidden_size": 16}):
        with pytest.raises(ValueError, match="Expected a configuration, or its fields by name"):
            AlbertEncoder(**arguments)
