"""The encoder's variables, seeds and configuration; goldens hold what it computes."""

from __future__ import annotations

import inspect

import pytest
import tensorflow as tf

from albert_tf.layers.operations import fold_in
from albert_tf.models import AlbertEncoder

INPUTS = {
    "input_word_ids": tf.constant([[3, 4, 5, 6], [7, 8, 0, 0]]),
    "input_mask": tf.constant([[1, 1, 1, 1], [1, 1, 0, 0]]),
    "input_type_ids": tf.constant([[0, 0, 1, 1], [0, 1, 0, 0]]),
}


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
