"""Whatever a Keras user gives a model becomes int32 ids, mask and types, or a sentence."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertEncoder, AlbertPretrainer, AlbertSpanLabelerV2
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertSpanPretrainer, ReplacedTokenPretrainer
from albert_tf.models.inputs import complete_inputs
from tests.conformance_cases import assert_equal

IDS = [[5, 6, 7], [8, 9, 0]]
MASK = [[1, 1, 1], [1, 1, 0]]


@pytest.fixture
def encoder(tiny_config) -> AlbertEncoder:
    return AlbertEncoder(tiny_config)


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
            "Expected a dict .* received a dict with input_ids. Rename input_ids to input_word_ids",
        ),
        (
            {"input_word_ids": IDS, "attention_mask": IDS},
            "received .* input_word_ids, attention_mask. Rename attention_mask to input_mask",
        ),
        ({"labels": IDS}, "received a dict with labels. Add input_word_ids"),
        (tf.constant([1.0]), "received input_word_ids of float32 with the shape"),
        (tf.constant(IDS[0]), r"received input_word_ids of int32 with the shape \(3,\)"),
        ({"input_word_ids": IDS, "input_mask": [[1.0] * 3] * 2}, "received input_mask of float32"),
        (tf.constant([["text"]]), "received input_word_ids of string"),
        (
            {"input_word_ids": IDS, "input_mask": [[1] * 4] * 2},
            r"input_mask of int32 with the shape \(2, 4\).* bring it to the shape \(2, 3\)",
        ),
        ({"input_word_ids": IDS, "input_type_ids": [[0] * 3]}, r"input_type_ids of .* \(1, 3\)"),
    ],
)
def test_anything_else_is_a_sentence(given, match):
    with pytest.raises(ValueError, match=match):
        complete_inputs(given)


@pytest.mark.parametrize("name", ["input_word_ids", "input_mask"])
def test_rows_of_different_lengths_are_a_sentence(name, tiny_config):
    encoder = AlbertEncoder(tiny_config)
    for given in ({"input_word_ids": IDS, name: [[1, 2], [3]]}, [[1, 2], [3]]):
        with pytest.raises(ValueError, match="rows of one length; received .*Pad short rows"):
            encoder(given)


def test_a_shape_that_is_not_known_yet_fits():
    """A graph of any batch and length; of these the mask may know more than the ids do."""

    @tf.function(input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec([4, None])])
    def mask(ids, given):
        inputs = {"input_word_ids": tf.cast(ids, tf.int32), "input_mask": tf.cast(given, tf.int32)}
        return complete_inputs(inputs)["input_mask"]

    np.testing.assert_array_equal(mask(tf.zeros([4, 3]), tf.ones([4, 3])), np.ones([4, 3]))


PAIRS = [[0, 1], [1, 2]]
# Models that need more than the inputs of an encoder, with what they need.
NEEDS = {
    AlbertPretrainer: {"masked_lm_positions": PAIRS},
    AlbertSpanPretrainer: {"masked_lm_positions": PAIRS},
    AlbertSpanLabelerV2: {"impossible_positions": MASK},
    ReplacedTokenPretrainer: {
        "masked_lm_positions": PAIRS,
        "masked_lm_ids": PAIRS,
        "masked_lm_weights": [[1.0, 1.0], [1.0, 0.0]],
        "sampling_noise": [[0.5, 0.5], [0.5, 0.5]],
    },
}


@pytest.mark.parametrize("model_class", NEEDS)
def test_what_a_task_model_needs_besides(model_class, tiny_config):
    beam = {"start_n_top": 2, "end_n_top": 2} if model_class is AlbertSpanLabelerV2 else {}
    model, needed = model_class(tiny_config, packed=False, **beam), NEEDS[model_class]
    names = ", ".join(needed)
    with pytest.raises(ValueError, match=f"a dict .*; received word ids alone. Add {names}"):
        model(tf.constant(IDS))
    given = {"input_word_ids": IDS, **needed}
    expected = tf.nest.flatten(model(given))
    for name, values in needed.items():
        rest = {key: value for key, value in given.items() if key != name}
        with pytest.raises(ValueError, match=f"and {names.replace(', ', '.*')}.*Add {name}"):
            model(rest)
        with pytest.raises(ValueError, match=rf"{name} of .* with the shape \(1, 2, \d\)"):
            model({**rest, name: [values]})
        with pytest.raises(ValueError, match=rf"{name} of .*with the shape \(3, \d\)"):
            model({**rest, name: [values[0]] * 3})
        with pytest.raises(ValueError, match=f"received {name} of string"):
            model({**rest, name: [["text", "text"]] * 2})
        kind = np.int64 if isinstance(values[0][0], int) else np.float64
        found = model({**rest, name: np.array(values, kind)})
        assert_equal(tf.nest.flatten(found), expected)


def test_gold_starts_are_checked_where_they_are_given(tiny_config):
    model = AlbertSpanLabelerV2(tiny_config, start_n_top=2, end_n_top=2)
    given = {"input_word_ids": IDS, "impossible_positions": MASK}
    assert "start_log_probs" in model({**given, "start_positions": np.int64([1, 0])})
    for starts in ([1], [[1, 0]], [0.5, 1.0], ["text", "text"]):
        with pytest.raises(ValueError, match=r"_positions \[batch\]; received start_positions"):
            model({**given, "start_positions": starts})


def test_a_sequence_is_as_long_as_the_beam_is_wide(tiny_config):
    model = AlbertSpanLabelerV2(tiny_config, start_n_top=2, end_n_top=4)
    with pytest.raises(ValueError, match="at least 4 positions, .*; received 3. Pad"):
        model({"input_word_ids": IDS, "impossible_positions": MASK})


def test_fractions_are_no_positions(tiny_config):
    with pytest.raises(ValueError, match="received masked_lm_positions of float32"):
        AlbertPretrainer(tiny_config)({"input_word_ids": IDS, "masked_lm_positions": [[0.5]] * 2})
    with pytest.raises(ValueError, match=r"bring it to the shape \(2, 3\)"):
        complete_inputs(
            {"input_word_ids": IDS, "impossible_positions": PAIRS}, also=("impossible_positions",)
        )
