"""What each signature answers: labels, pairs, tf.Examples, masks."""

import numpy as np
import pytest
import tensorflow as tf

from export.encoding import encode_batch, encode_masked_batch
from export.probes import example_of
from export.saved_model import describe_signature


@pytest.fixture(scope="module")
def classifier(exports):
    return tf.saved_model.load(exports.paths["classifier"]).signatures


@pytest.fixture(scope="module")
def masked_lm(exports):
    return tf.saved_model.load(exports.paths["masked_lm"]).signatures


def test_names_and_types_of_the_contract(classifier, masked_lm):
    answer = {
        "label": "string[?]",
        "label_id": "int32[?]",
        "logits": "float32[?, 3]",
        "probabilities": "float32[?, 3]",
    }
    tokens = dict.fromkeys(("input_mask", "input_type_ids", "input_word_ids"), "int32[?, ?]")
    assert {name: describe_signature(signature) for name, signature in classifier.items()} == {
        "serving_default": {"inputs": {"text": "string[?]"}, "outputs": answer},
        "text_pair": {"inputs": {"text_a": "string[?]", "text_b": "string[?]"}, "outputs": answer},
        "tokens": {"inputs": tokens, "outputs": answer},
        "classify": {
            "inputs": {"inputs": "string[?]"},
            "outputs": {"classes": "string[?, 3]", "scores": "float32[?, 3]"},
        },
    }
    assert set(masked_lm) == {"serving_default", "tokens"}
    assert set(describe_signature(masked_lm["tokens"])["inputs"]) == {
        *tokens,
        "masked_lm_positions",
    }


def test_label_is_the_most_probable_one(classifier):
    answer = classifier["serving_default"](
        text=tf.constant(["the cat", "a dog", "river water", ""])
    )
    best = np.argmax(answer["probabilities"], axis=1)
    np.testing.assert_array_equal(answer["label_id"], best)
    labels = [label.decode() for label in answer["label"].numpy()]
    assert labels == [("red", "green", "blå")[index] for index in best]
    np.testing.assert_allclose(np.sum(answer["probabilities"], axis=1), 1, rtol=1e-5)


def test_pairs_and_classify_equal_keras(exports, classifier):
    first, second = ["the cat", "a dog", "river"], ["looked at", "", "house " * 60]
    logits = exports.models["classifier"](
        encode_batch(exports.vocabulary, first, 48, second), training=False
    )
    answer = classifier["text_pair"](text_a=tf.constant(first), text_b=tf.constant(second))
    np.testing.assert_allclose(answer["logits"], logits, atol=1e-5)
    examples = [
        example_of({"text": a, "text_b": b}).SerializeToString() for a, b in zip(first, second)
    ]
    examples[1] = example_of({"text": first[1]}).SerializeToString()
    answer = classifier["classify"](inputs=tf.constant(examples))
    np.testing.assert_allclose(answer["scores"], tf.nn.softmax(logits), atol=1e-5)
    assert answer["classes"].numpy().tolist() == [[b"red", b"green", "blå".encode()]] * 3


def test_an_answer_does_not_depend_on_its_neighbors_in_the_batch(classifier):
    serve = classifier["serving_default"]
    alone = serve(text=tf.constant(["the cat"]))["logits"]
    together = serve(text=tf.constant(["the cat", "the dog runs slowly " * 9]))["logits"]
    np.testing.assert_allclose(alone[0], together[0], atol=1e-5)


def test_masks_are_filled_as_keras_fills_them(exports, masked_lm):
    texts = ["the [MASK] of [MASK].", "no mask", "[MASK] cat"]
    answer = {
        name: value.numpy()
        for name, value in masked_lm["serving_default"](text=tf.constant(texts)).items()
    }
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


def test_texts_without_any_mask(masked_lm):
    answer = masked_lm["serving_default"](text=tf.constant(["a", "b"]))
    assert answer["top_ids"].shape == (2, 0, 5)
    assert answer["num_masks"].numpy().tolist() == [0, 0]


def test_a_mask_beyond_the_longest_sequence_is_not_counted(masked_lm):
    answer = masked_lm["serving_default"](text=tf.constant(["[MASK] " + "cat " * 80 + "[MASK]"]))
    assert answer["num_masks"].numpy().tolist() == [1]
