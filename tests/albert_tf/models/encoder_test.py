"""The encoder put together: its outputs, its variables, and where dropout comes from."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.layers.blocks import Operations
from albert_tf.layers.forward_pass import ForwardPass, attention_bias
from albert_tf.layers.operations import fold_in
from albert_tf.layers.packing import PaddedLayout
from albert_tf.models import AlbertEncoder

INPUTS = {
    "input_word_ids": tf.constant([[3, 4, 5, 6], [7, 8, 0, 0]]),
    "input_mask": tf.constant([[1, 1, 1, 1], [1, 1, 0, 0]]),
    "input_type_ids": tf.constant([[0, 0, 1, 1], [0, 1, 0, 0]]),
}
REAL = INPUTS["input_mask"].numpy() > 0


@pytest.fixture(autouse=True)
def plain(fast_choice):
    fast_choice("off")


def filled(encoder) -> AlbertEncoder:
    rng = np.random.default_rng(1)
    encoder.set_weights([0.3 * rng.normal(size=w.shape) for w in encoder.get_weights()])
    return encoder


def by_hand(encoder) -> list[np.ndarray]:
    """The outputs of all layers [B, S, H], from the parts of the encoder."""
    mask = INPUTS["input_mask"]
    layout = PaddedLayout(mask)
    forward = ForwardPass(Operations(), layout, attention_bias(mask))
    rows = encoder.embeddings(INPUTS["input_word_ids"], INPUTS["input_type_ids"], layout)
    return [layout.to_padded(each).numpy() for each in encoder.transformer(rows, forward)]


@pytest.mark.parametrize("packed", [False, True])
def test_outputs(tiny_config, packed):
    encoder = filled(AlbertEncoder(tiny_config.replace(inner_group_num=2), packed=packed))
    found, expected = encoder(INPUTS), by_hand(encoder)
    assert len(found["encoder_outputs"]) == len(expected) == 4
    for one, other in zip(found["encoder_outputs"], expected):
        assert one.shape == [2, 4, 16]
        np.testing.assert_allclose(one.numpy()[REAL], other[REAL], atol=1e-5)
    np.testing.assert_allclose(
        found["sequence_output"].numpy()[REAL], expected[-1][REAL], atol=1e-5
    )
    kernel, bias = encoder.pooler.get_weights()
    pooled = np.tanh(expected[-1][:, 0] @ kernel + bias)
    np.testing.assert_allclose(found["pooled_output"], pooled, atol=1e-5)


@pytest.mark.parametrize("packed", [False, True])
def test_hidden_at_some_positions(tiny_config, packed):
    encoder = filled(AlbertEncoder(tiny_config, packed=packed))
    positions = tf.constant([[3, 0, 3], [1, 1, 0]])
    found = encoder.hidden_at(INPUTS, positions)
    whole = by_hand(encoder)[-1]
    assert found.shape == [2, 3, 16]
    np.testing.assert_allclose(found[0], whole[0][[3, 0, 3]], atol=1e-5)
    np.testing.assert_allclose(found[1], whole[1][[1, 1, 0]], atol=1e-5)


def test_there_are_variables_before_the_first_call_and_only_once(tiny_config):
    encoder = AlbertEncoder(tiny_config)
    before = [id(variable) for variable in encoder.variables]
    encoder.build([None, 4])
    encoder(INPUTS)
    assert [id(variable) for variable in encoder.variables] == before
    assert encoder.built


def test_embedding_and_stack_have_seeds_of_their_own(tiny_config, monkeypatch):
    encoder, seeds = AlbertEncoder(tiny_config), {}
    for part in (encoder.embeddings, encoder.transformer):

        def call_and_note(*given, part=part, call=part.call, **named):
            arguments = inspect.signature(call).bind(*given, **named).arguments
            seeds[part.name] = arguments["seed"].numpy().tolist()
            return call(*given, **named)

        monkeypatch.setattr(part, "call", call_and_note)
    encoder(INPUTS, training=True, seed=tf.constant([5, 6]))
    given = tf.constant([5, 6])
    assert seeds == {
        "embeddings": fold_in(given, 0).numpy().tolist(),
        "transformer": fold_in(given, 1).numpy().tolist(),
    }


def test_a_configuration_or_its_fields(tiny_config):
    assert AlbertEncoder(**tiny_config.to_dict()).config == tiny_config
    named = AlbertEncoder(vocab_size=9, hidden_size=64, intermediate_size=4, num_hidden_layers=1)
    assert (named.config.vocab_size, named.config.hidden_size) == (9, 64)
    with pytest.raises(ValueError, match=r"Expected a configuration, or its fields by name"):
        AlbertEncoder()
    with pytest.raises(ValueError, match=r"received AlbertConfig.* and \{'vocab_size': 9\}"):
        AlbertEncoder(tiny_config, vocab_size=9)
