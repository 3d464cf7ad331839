"""Choices as fine-tuning makes them: long options, and rows with fewer options."""

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.finetuning.examples import ChoiceExample
from data_pipeline.finetuning.features import encode_choices

QUESTIONS = ["She _ home.", "Where?", "_\uff3f and ﹏", "a\n_ b", ""]
OPTIONS = [["went", "x_y"], ["Here.", ""], ["a", "é"], ["\\1", "中"], ["the cat", "dog"]]


@pytest.fixture(scope="module")
def served(signatures):
    return signatures("multiple_choice")["serving_default"]


def test_choices_equal_keras(exports, served):
    contexts = ["the cat looked at the river " * 9, "Café", "", "dog", "paris"]
    options = [[*row[:1], "a man " * 30, row[1] or "house"] for row in OPTIONS]
    examples = [
        ChoiceExample(str(row), context, question, tuple(choices), None, "", "here", 1)
        for row, (context, question, choices) in enumerate(zip(contexts, QUESTIONS, options))
    ]
    inputs = encode_choices(examples, exports.vocabulary, 48, 20).inputs()
    logits = exports.models["multiple_choice"](inputs, training=False).numpy()
    answer = served(
        context=tf.constant(contexts),
        question=tf.constant(QUESTIONS),
        options=tf.constant(options),
    )
    np.testing.assert_allclose(answer["probabilities"], tf.nn.softmax(logits), atol=1e-5)
    best = np.argmax(answer["probabilities"], axis=1)
    np.testing.assert_array_equal(answer["choice"], best)
    assert [text.decode() for text in answer["option"].numpy()] == [
        row[number] for row, number in zip(options, best)
    ]


def test_an_empty_option_is_never_chosen(served):
    def ask(options):
        return served(
            context=tf.constant(["the cat"]),
            question=tf.constant(["who"]),
            options=tf.constant([options]),
        )

    two, three = ask(["a dog", "the river"]), ask(["a dog", "the river", ""])
    np.testing.assert_allclose(three["probabilities"][:, :2], two["probabilities"], atol=1e-5)
    assert three["probabilities"].numpy()[0, 2] == 0
