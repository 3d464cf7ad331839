"""The head of SQuAD 2.0 against NumPy: starts, ends given a start, answerability, the beam; and
that of SQuAD 1.1.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.models.spans import SpanHead, position_mask

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


def dense(layer, x):
    kernel, *bias = layer.get_weights()
    return x @ kernel + sum(bias)


def log_softmax(logits):
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def start_log_probs(head):
    return log_softmax(dense(head.start_logits, HIDDEN)[..., 0] - 1e4 * IMPOSSIBLE)


def end_log_probs(head, example, start):
    """float [S], of one example given one start."""
    at_start = np.broadcast_to(HIDDEN[example, start], HIDDEN[example].shape)
    x = np.tanh(dense(head.end_transform, np.concatenate([HIDDEN[example], at_start], axis=-1)))
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    norm = normal * head.end_layer_norm.gamma.numpy() + head.end_layer_norm.beta.numpy()
    return log_softmax(dense(head.end_logits, norm)[:, 0] - 1e4 * IMPOSSIBLE[example])


def answer_logits(head):
    likely = np.einsum("bs,bsh->bh", np.exp(start_log_probs(head)), HIDDEN)
    features = np.concatenate([likely, HIDDEN[:, 0]], axis=-1)
    return dense(head.answer_logits, np.tanh(dense(head.answer_transform, features)))[:, 0]


def call(head, *arguments, **settings):
    outputs = head(tf.constant(HIDDEN), tf.constant(IMPOSSIBLE), *arguments, **settings)
    return {name: value.numpy() for name, value in outputs.items()}


def test_position_mask():
    mask = position_mask(tf.constant([[0, 1, 0]]))
    assert mask.dtype == tf.float32
    np.testing.assert_array_equal(mask, [[0, -10000, 0]])


def test_given_the_starts(head):
    found = call(head, tf.constant(STARTS))
    assert sorted(found) == ["answer_logits", "end_log_probs", "start_log_probs"]
    np.testing.assert_allclose(found["start_log_probs"], start_log_probs(head), rtol=1e-4)
    ends = [end_log_probs(head, example, start) for example, start in enumerate(STARTS)]
    np.testing.assert_allclose(found["end_log_probs"], ends, rtol=1e-4)
    np.testing.assert_allclose(found["answer_logits"], answer_logits(head), atol=1e-4)


def test_the_beam(head):
    found = call(head)
    assert "start_log_probs" not in found
    for example, log_probs in enumerate(start_log_probs(head)):
        starts = np.argsort(-log_probs)[:2]
        np.testing.assert_array_equal(found["start_top_index"][example], starts)
        np.testing.assert_allclose(
            found["start_top_log_probs"][example], log_probs[starts], rtol=1e-4
        )
        for number, start in enumerate(starts):
            ends = end_log_probs(head, example, start)
            beam, best = slice(3 * number, 3 * number + 3), np.argsort(-ends)[:3]
            np.testing.assert_array_equal(found["end_top_index"][example, beam], best)
            np.testing.assert_allclose(
                found["end_top_log_probs"][example, beam], ends[best], rtol=1e-4
            )
    assert found["end_top_index"].shape == (2, 6)
    np.testing.assert_allclose(found["answer_logits"], answer_logits(head), atol=1e-4)


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
