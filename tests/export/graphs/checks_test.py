"""The sentence in an error of a graph."""

import pytest
import tensorflow as tf

from export.graphs.checks import REFUSALS, reason


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
