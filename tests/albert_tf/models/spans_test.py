"""Dropout of the head of SQuAD 2.0; heads_golden_test.py holds what it computes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.models.spans import SpanHead

RNG = np.random.default_rng(0)
HIDDEN = RNG.normal(size=[2, 6, 16]).astype(np.float32)
IMPOSSIBLE = np.int32([[0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0]])
STARTS = np.int32([3, 2])


@pytest.fixture
def head(tiny_config) -> SpanHead:
    """With a beam of 2 starts and 3 ends each, and random weights."""
    head = SpanHead(tiny_config, start_n_top=2, end_n_top=3)
    with tf.name_scope("span"):
        head.build()
    rng = np.random.default_rng(1)
    head.set_weights([0.5 * rng.normal(size=w.shape) for w in head.get_weights()])
    return head


def call(head, *arguments, **settings):
    outputs = head(tf.constant(HIDDEN), tf.constant(IMPOSSIBLE), *arguments, **settings)
    return {name: value.numpy() for name, value in outputs.items()}


def test_dropout_of_the_answer_alone(head):
    """A tenth, whatever the configuration says."""
    seed = tf.constant([1, 2])
    whole, dropped, again, other = (
        call(head, tf.constant(STARTS), training=training, seed=each)
        for training, each in ((False, seed), (True, seed), (True, seed), (True, seed + 3))
    )
    assert head.answer_dropout.rate == 0.1
    np.testing.assert_array_equal(whole["start_log_probs"], dropped["start_log_probs"])
    np.testing.assert_array_equal(whole["end_log_probs"], dropped["end_log_probs"])
    np.testing.assert_array_equal(dropped["answer_logits"], again["answer_logits"])
    assert (dropped["answer_logits"] != whole["answer_logits"]).any()
    assert (dropped["answer_logits"] != other["answer_logits"]).any()
