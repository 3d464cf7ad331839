"""The sentence in an error of a graph."""

import pytest
import tensorflow as tf

from export.graph_errors import REFUSALS, reason


def test_the_reason_is_found_in_a_graph_error():
    message = "Graph execution error:\n\nDetected at node a\nindices[0] = 9 is not in [0, 5)"
    message += "\n\t [[{{node a}}]] [Op:__inference_f_1]"
    assert reason(message) == "indices[0] = 9 is not in [0, 5)"
    assert reason("plain") == "plain"


def test_the_reason_is_the_last_line_before_the_node():
    assert reason("Graph execution error:\nToo long. [[{{node a/b}}]] [Op:x]") == "Too long."
    assert reason("[[{{node a}}]]") == "[[{{node a}}]]"


def test_a_failed_assertion_is_a_refusal():
    @tf.function
    def half(number):
        with tf.control_dependencies([tf.debugging.assert_equal(number % 2, 0, "Only even ones.")]):
            return number // 2

    with pytest.raises(REFUSALS) as caught:
        half(tf.constant(3))
    assert "Only even ones." in caught.value.message
