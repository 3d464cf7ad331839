"""The encoder as TF-Hub's API has it, before it is saved.

Objects can be called once they are loaded; until then by `__call__`.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from export.signatures.encoder import EncoderModule, expected
from tests.export.conftest import loaded_as

INPUTS = {
    "input_word_ids": tf.constant([[2, 8, 9, 3], [2, 7, 3, 0]]),
    "input_mask": tf.constant([[1, 1, 1, 1], [1, 1, 1, 0]]),
    "input_type_ids": tf.zeros([2, 4], tf.int32),
}


@pytest.fixture(scope="module")
def pretrainer(keras_models):
    return keras_models["pretrainer"]


@pytest.fixture(scope="module")
def loaded(pretrainer, vocabulary):
    return loaded_as(pretrainer, vocabulary, 16)


@pytest.fixture(scope="module")
def module(loaded) -> EncoderModule:
    return EncoderModule(loaded)


def test_outputs_are_those_of_the_encoder(module, pretrainer):
    expected, found = pretrainer.encoder(INPUTS), module.__call__(INPUTS)
    assert set(found) == {"sequence_output", "pooled_output", "default", "encoder_outputs"}
    np.testing.assert_allclose(found["pooled_output"], expected["pooled_output"], atol=1e-6)
    np.testing.assert_array_equal(found["default"], found["pooled_output"])
    assert len(found["encoder_outputs"]) == len(expected["encoder_outputs"])
    served = module.signatures()["tokens"](**INPUTS)
    assert set(served) == {"sequence_output", "pooled_output"}
    np.testing.assert_array_equal(served["pooled_output"], found["pooled_output"])


def test_masked_words(module, pretrainer):
    positions = tf.constant([[1, 2], [1, 0]])
    found = module.mlm.__call__({**INPUTS, "masked_lm_positions": positions})["mlm_logits"]
    expected = pretrainer({**INPUTS, "masked_lm_positions": positions})["masked_lm_logits"]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_a_hub_layer_trains(module, pretrainer, vocabulary):
    encoder, head = pretrainer.encoder, pretrainer.masked_lm
    assert module.trainable_variables == encoder.trainable_variables
    assert module.mlm.variables == [*encoder.variables, *head.variables]
    assert module.regularization_losses == []
    assert not hasattr(EncoderModule(loaded_as(encoder, vocabulary)), "mlm")


def test_signatures_answer_as_expected(module, loaded):
    found = expected(loaded)
    assert list(found.answers) == list(module.signatures()) == ["serving_default", "tokens"]
    served = module.signatures()["tokens"](**{k: tf.constant(v) for k, v in found.asked.items()})
    is_real = found.asked["input_mask"] > 0
    for name, value in found.answers["tokens"].items():
        pick = is_real if name == "sequence_output" else slice(None)
        np.testing.assert_allclose(served[name].numpy()[pick], value[pick], atol=1e-5)
