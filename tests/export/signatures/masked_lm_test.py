"""Masked words: what is filled in, and where there is nothing to fill."""

import numpy as np
import tensorflow as tf

from export.encoding import encode_masked_batch
from export.signatures.masked_lm import expected
from tests.export.conftest import loaded_as


def test_masks_are_filled_as_keras_fills_them(exports, answers):
    texts = ["the [MASK] of [MASK].", "no mask", "[MASK] cat"]
    answer = answers("masked_lm", text=texts)
    inputs = encode_masked_batch(exports.vocabulary, texts, 48)
    assert answer["num_masks"].tolist() == [2, 0, 1]
    assert all(len(value) == 3 for value in answer.values())
    for row in range(3):
        at = np.flatnonzero(inputs["input_word_ids"][row] == exports.vocabulary.mask_id)
        positions = np.concatenate([at, np.full(2 - len(at), -1)])
        np.testing.assert_array_equal(answer["positions"][row], positions)
    inputs["masked_lm_positions"] = np.maximum(answer["positions"], 0)
    probabilities = tf.nn.softmax(exports.models["pretrainer"](inputs)["masked_lm_logits"]).numpy()
    for row, mask in ((0, 0), (0, 1), (2, 0)):
        ids = answer["top_ids"][row, mask]
        expected = probabilities[row, mask]
        np.testing.assert_array_equal(ids[:1], [np.argmax(expected)])
        np.testing.assert_allclose(answer["top_probabilities"][row, mask], expected[ids], atol=1e-5)
        pieces = [piece.decode() for piece in answer["top_pieces"][row, mask]]
        assert pieces == exports.vocabulary.ids_to_pieces(ids.tolist())
    assert (answer["top_ids"][1] == -1).all() and (answer["top_pieces"][1] == b"").all()
    assert (answer["top_probabilities"][1] == 0).all()


def test_a_mask_beyond_the_longest_sequence_is_not_counted(answers):
    answer = answers("masked_lm", text=["[MASK] " + "cat " * 80 + "[MASK]"])
    assert answer["num_masks"].tolist() == [1]


def test_answers_of_a_masked_lm(vocabulary):
    scores = np.array([0.0, 0.1, 0.5, 0.2, 0.3, 0.4, 0.6])

    def model(inputs, training):
        logits = tf.cast(inputs["masked_lm_positions"], tf.float32)[..., None] * scores
        return {"masked_lm_logits": logits, "sentence_order_logits": tf.zeros([4, 2])}

    found = expected(loaded_as(model, vocabulary))
    texts, tokens = found.answers["serving_default"], found.answers["tokens"]
    assert texts["num_masks"].tolist() == [2, 0, 1, 2], "one is beyond the length"
    positions = texts["positions"]
    assert positions[2].tolist() == [1, -1] and positions[3].tolist() == [1, 2]
    assert (found.asked["masked_lm_positions"] >= 0).all() and len(found.asked["text"]) == 4
    best = texts["top_probabilities"]
    assert best.shape == (4, 2, 5) and not best[1].any() and not best[2, 1].any()
    probabilities = np.exp([0.6, 0.5, 0.4, 0.3, 0.2]) / np.exp(scores).sum()
    np.testing.assert_allclose(best[2, 0], probabilities, rtol=1e-5)
    assert tokens["masked_lm_logits"].shape == (4, 2, 7)
