"""Embeddings: vectors of length 1, their similarity, and models of other kinds."""

import numpy as np

from export.encoding import encode_batch
from export.signatures.embedding import as_sentence_encoder
from tests.export.conftest import loaded_as

TEXTS = ["the cat", "Café, 2010, and then a dog", "every man who looked at the river", ""]


def test_vectors_equal_keras_and_have_length_one(exports, answers):
    answer = answers("embedding", text=TEXTS)
    outputs = exports.models["sentence_encoder"](encode_batch(exports.vocabulary, TEXTS, 48))
    for name, other in (("embedding", "mean_output"), ("pooled", "pooled_output")):
        expected = outputs[other] / np.linalg.norm(outputs[other], axis=1, keepdims=True)
        np.testing.assert_allclose(answer[name], expected, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(answer[name], axis=1), 1, atol=1e-5)


def test_similarity_is_the_cosine_between_both(answers):
    vectors, others = answers("embedding", text=TEXTS), TEXTS[1:] + TEXTS[:1]
    answer = answers("embedding", "similarity", text_a=TEXTS, text_b=others)
    for name, output in (("embedding", "similarity"), ("pooled", "pooled_similarity")):
        cosines = (vectors[name] * np.roll(vectors[name], -1, axis=0)).sum(axis=1)
        np.testing.assert_allclose(answer[output], cosines, atol=1e-5)
    same = answers("embedding", "similarity", text_a=TEXTS, text_b=TEXTS)
    np.testing.assert_allclose(same["similarity"], 1, atol=1e-5)


def test_any_encoder_makes_a_sentence_encoder(exports):
    pretrainer = loaded_as(exports.models["pretrainer"], exports.vocabulary)
    inputs = encode_batch(exports.vocabulary, TEXTS, 48)
    found = as_sentence_encoder(pretrainer).model(inputs)["pooled_output"]
    np.testing.assert_array_equal(found, pretrainer.encoder(inputs)["pooled_output"])
