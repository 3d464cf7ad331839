"""Choices as fine-tuning makes them: long options, and rows with fewer options."""

import numpy as np
import tensorflow as tf

from data_pipeline.finetuning.examples import ChoiceExample
from data_pipeline.finetuning.features import encode_choices

QUESTIONS = ["She _ home.", "Where?", "_\uff3f and ﹏", "a\n_ b", ""]
OPTIONS = [["went", "x_y"], ["Here.", ""], ["a", "é"], ["\\1", "中"], ["the cat", "dog"]]


def test_choices_equal_keras(exports, answers):
    contexts = ["the cat looked at the river " * 9, "Café", "", "dog", "paris"]
    options = [[*row[:1], "a man " * 30, row[1] or "house"] for row in OPTIONS]
    examples = [
        ChoiceExample(str(row), context, question, tuple(choices), None, "", "here", 1)
        for row, (context, question, choices) in enumerate(zip(contexts, QUESTIONS, options))
    ]
    inputs = encode_choices(examples, exports.vocabulary, 48, 20).inputs()
    logits = exports.models["multiple_choice"](inputs, training=False).numpy()
    answer = answers("multiple_choice", context=contexts, question=QUESTIONS, options=options)
    np.testing.assert_allclose(answer["probabilities"], tf.nn.softmax(logits), atol=1e-5)
    best = np.argmax(answer["probabilities"], axis=1)
    np.testing.assert_array_equal(answer["choice"], best)
    assert [text.decode() for text in answer["option"]] == [
        row[number] for row, number in zip(options, best)
    ]


def test_an_empty_option_is_never_chosen(answers):
    asked = {"context": ["the cat"], "question": ["who"]}
    two, three = (
        answers("multiple_choice", **asked, options=[options])["probabilities"]
        for options in (["a dog", "the river"], ["a dog", "the river", ""])
    )
    np.testing.assert_allclose(three[:, :2], two, atol=1e-5)
    assert three[0, 2] == 0
