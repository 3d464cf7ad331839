"""A regression's signatures: the number of fine-tuning, by text, pair, tokens and tf.Example."""

import numpy as np
import pytest

from export.encoding import encode_batch
from export.probes import example_of

FIRST, SECOND = ["the cat", "a dog", "river"], ["looked at", "", "house " * 60]


@pytest.fixture(scope="module")
def numbers(exports):
    inputs = encode_batch(exports.vocabulary, FIRST, 48, SECOND)
    return exports.models["regression"](inputs, training=False).numpy()[:, 0]


def test_numbers_equal_keras(answers, numbers):
    answer = answers("regression", "text_pair", text_a=FIRST, text_b=SECOND)
    np.testing.assert_allclose(answer["value"], numbers, atol=1e-5)
    assert np.ptp(numbers) > 1e-3, "not one number for all"


def test_examples_with_and_without_a_second_text(answers, numbers):
    examples = [example_of({"text": a, "text_b": b}) for a, b in zip(FIRST, SECOND)]
    examples[1] = example_of({"text": FIRST[1]})
    serialized = [example.SerializeToString() for example in examples]
    answer = answers("regression", "regress", inputs=serialized)
    np.testing.assert_allclose(answer["outputs"], numbers, atol=1e-5)
