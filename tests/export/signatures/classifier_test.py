"""A classifier's signatures: labels, pairs, tf.Examples."""

import numpy as np
import tensorflow as tf

from export.check_export import describe_signature
from export.encoding import encode_batch
from export.probes import example_of
from export.signatures.classifier import expected
from tests.export.conftest import loaded_as


def test_names_and_types_of_the_contract(signatures):
    answer = {
        "label": "string[?]",
        "label_id": "int32[?]",
        "logits": "float32[?, 3]",
        "probabilities": "float32[?, 3]",
    }
    tokens = dict.fromkeys(("input_mask", "input_type_ids", "input_word_ids"), "int32[?, ?]")
    found = {name: describe_signature(each) for name, each in signatures("classifier").items()}
    assert found == {
        "serving_default": {"inputs": {"text": "string[?]"}, "outputs": answer},
        "text_pair": {"inputs": {"text_a": "string[?]", "text_b": "string[?]"}, "outputs": answer},
        "tokens": {"inputs": tokens, "outputs": answer},
        "classify": {
            "inputs": {"inputs": "string[?]"},
            "outputs": {"classes": "string[?, 3]", "scores": "float32[?, 3]"},
        },
    }


def test_label_is_the_most_probable_one(answers):
    answer = answers("classifier", text=["the cat", "a dog", "river water", ""])
    best = np.argmax(answer["probabilities"], axis=1)
    np.testing.assert_array_equal(answer["label_id"], best)
    labels = [label.decode() for label in answer["label"]]
    assert labels == [("red", "green", "blå")[index] for index in best]
    np.testing.assert_allclose(np.sum(answer["probabilities"], axis=1), 1, rtol=1e-5)


def test_pairs_and_classify_equal_keras(exports, answers):
    first, second = ["the cat", "a dog", "river"], ["looked at", "", "house " * 60]
    logits = exports.models["classifier"](
        encode_batch(exports.vocabulary, first, 48, second), training=False
    )
    answer = answers("classifier", "text_pair", text_a=first, text_b=second)
    np.testing.assert_allclose(answer["logits"], logits, atol=1e-5)
    examples = [
        example_of({"text": a, "text_b": b}).SerializeToString() for a, b in zip(first, second)
    ]
    examples[1] = example_of({"text": first[1]}).SerializeToString()
    answer = answers("classifier", "classify", inputs=examples)
    np.testing.assert_allclose(answer["scores"], tf.nn.softmax(logits), atol=1e-5)
    assert answer["classes"].tolist() == [[b"red", b"green", "blå".encode()]] * 3


def counting(inputs, training):
    """A stand-in for a classifier: its logits are numbers of tokens and of second segments."""
    assert training is False
    columns = [tf.reduce_sum(inputs[name], axis=1) for name in ("input_mask", "input_type_ids")]
    return tf.cast(tf.stack(columns, axis=1), tf.float32)


def test_answers_of_a_classifier(vocabulary):
    found = expected(loaded_as(counting, vocabulary, labels=("a", "b")))
    single, pair, tokens, classify = found.answers.values()
    assert list(found.answers) == ["serving_default", "text_pair", "tokens", "classify"]
    lengths = single["logits"][:, 0]
    assert lengths[2] == 2 and lengths[5] == 48 and not single["logits"][:, 1].any()
    np.testing.assert_allclose(single["probabilities"].sum(axis=1), 1, rtol=1e-5)
    assert found.asked["input_word_ids"].shape == (6, 48)
    assert tokens is single
    assert pair["logits"][1].tolist() == [lengths[1], 0], "an empty second text"
    assert pair["logits"][0, 1] > 0
    assert classify["classes"].tolist() == [[b"a", b"b"]] * 6
    assert classify["scores"] is single["probabilities"]
