"""The sentence in an error of a graph."""

import contextlib

import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from export.graphs.checks import REFUSALS, checked_tokens, reason


def of(message):
    return reason(tf.errors.InvalidArgumentError(None, None, message))


def test_the_reason_is_the_last_line_before_the_node():
    message = "Graph execution error:\n\nDetected at node a\nindices[0] = 9 is not in [0, 5)"
    message += "\n\t [[{{node a}}]] [Op:__inference_f_1]"
    assert of(message) == "indices[0] = 9 is not in [0, 5)"
    assert of("plain") == "plain"
    assert of("Graph execution error:\nToo long. [[{{node a/b}}]] [Op:x]") == "Too long."
    assert of("[[{{node a}}]]") == "[[{{node a}}]]"
    assert of("Could not parse " + "a" * 1_000_000) == "Could not parse " + "a" * 284


@tf.function
def half(number):
    with tf.control_dependencies([tf.debugging.assert_equal(number % 2, 0, "Only even ones.")]):
        return number // 2


@tf.function
def parse(example):
    return tf.io.parse_example(example, {"text": tf.io.FixedLenFeature([], tf.string)})


def test_what_graphs_refuse():
    with pytest.raises(REFUSALS) as caught:
        half(tf.constant(3))
    assert "Only even ones." in caught.value.message
    with pytest.raises(REFUSALS) as caught:
        parse(tf.constant([b"\xff\xfe"]))  # TensorFlow's message quotes it, and cannot be read.
    assert reason(caught.value) and "\n" not in reason(caught.value)


@pytest.mark.parametrize(
    "shape, changed, message",
    [
        ([9, 2], {}, None),  # More rows than positions.
        ([1, 8], {}, None),
        ([1, 9], {}, "of 2 to 8 ids"),
        ([9, 1], {}, "of 2 to 8 ids"),
        ([0, 2], {}, "at least one row"),
        ([1, 2], {"input_word_ids": 49}, None),
        ([1, 2], {"input_word_ids": 50}, "input_word_ids must be from 0 to 49"),
        ([1, 2], {"input_word_ids": -1}, "input_word_ids must be from 0 to 49"),
        ([1, 2], {"input_mask": 2}, "input_mask must be 0 or 1"),
        ([1, 2], {"input_type_ids": 2}, "input_type_ids must be from 0 to 1"),
        ([1, 2], {"input_type_ids": -1}, "input_type_ids must be from 0 to 1"),
    ],
)
def test_what_tokens_are_refused(shape, changed, message):
    config = AlbertConfig(vocab_size=50, max_position_embeddings=8)
    names = ("input_word_ids", "input_mask", "input_type_ids")
    given = {name: tf.fill(shape, changed.get(name, 1)) for name in names}
    with pytest.raises(REFUSALS, match=message) if message else contextlib.nullcontext():
        found = checked_tokens(**given, config=config, shortest=2)
        assert list(found) == list(names)
        for name in names:
            tf.debugging.assert_equal(found[name], given[name])
