"""A regression's signatures: the number of fine-tuning, by text, pair, tokens and tf.Example."""

import numpy as np
import pytest
import tensorflow as tf

from export.check_export import describe_signature
from export.encoding import encode_batch
from export.probes import example_of


@pytest.fixture(scope="module")
def regression(signatures):
    return signatures("regression")


FIRST, SECOND = ["the cat", "a dog", "river"], ["looked at", "", "house " * 60]


@pytest.fixture(scope="module")
def numbers(exports):
    inputs = encode_batch(exports.vocabulary, FIRST, 48, SECOND)
    return exports.models["regression"](inputs, training=False).numpy()[:, 0]


def test_the_contract_of_regress(regression):
    assert describe_signature(regression["regress"]) == {
        "inputs": {"inputs": "string[?]"},
        "outputs": {"outputs": "float32[?]"},
    }
    assert describe_signature(regression["serving_default"])["outputs"] == {"value": "float32[?]"}


def test_numbers_equal_keras(regression, numbers):
    answer = regression["text_pair"](text_a=tf.constant(FIRST), text_b=tf.constant(SECOND))
    np.testing.assert_allclose(answer["value"], numbers, atol=1e-5)
    assert np.ptp(numbers) > 1e-3, "not one number for all"


def test_examples_with_and_without_a_second_text(regression, numbers):
    examples = [example_of({"text": a, "text_b": b}) for a, b in zip(FIRST, SECOND)]
    examples[1] = example_of({"text": FIRST[1]})
    serialized = [example.SerializeToString() for example in examples]
    answer = regression["regress"](inputs=tf.constant(serialized))
    np.testing.assert_allclose(answer["outputs"], numbers, atol=1e-5)
