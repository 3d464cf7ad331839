"""Pieces that look out of place, with their places in the text."""

import numpy as np
import tensorflow as tf

from export.encoding import encode_batch

TEXTS = ["Café, ﬁne at 10,000 rivers", "", "the cat " * 40]


def test_pieces_and_probabilities_equal_keras(exports):
    signature = tf.saved_model.load(exports.paths["replaced_tokens"]).signatures["serving_default"]
    answer = {name: value.numpy() for name, value in signature(text=tf.constant(TEXTS)).items()}
    inputs = encode_batch(exports.vocabulary, TEXTS, 48)
    logits = exports.models["detector"](inputs, training=False)["replaced_logits"]
    expected = tf.sigmoid(logits).numpy()
    assert answer["num_pieces"].tolist() == (inputs["input_mask"].sum(axis=1) - 2).tolist()
    for row, text in enumerate(TEXTS):
        count = answer["num_pieces"][row]
        ids = inputs["input_word_ids"][row, 1 : count + 1]
        pieces = [piece.decode() for piece in answer["pieces"][row, :count]]
        assert pieces == exports.vocabulary.ids_to_pieces(ids)
        np.testing.assert_allclose(
            answer["probabilities"][row, :count], expected[row, 1 : count + 1], atol=1e-5
        )
        for number, piece in enumerate(pieces):
            start, end = answer["starts"][row, number], answer["ends"][row, number]
            letters = text[start:end]
            start, end = answer["byte_starts"][row, number], answer["byte_ends"][row, number]
            assert text.encode()[start:end].decode() == letters
            assert letters == letters.strip() and (letters or piece == "▁")
        assert (answer["starts"][row, count:] == -1).all()
