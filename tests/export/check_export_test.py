"""The findings about a SavedModel."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.models import AlbertReplacedTokenDetector, AlbertSpanLabeler, AlbertTokenClassifier
from export.check_export import ask, describe_signature, reply
from export.probes import PLACES, Probe
from export.signatures import masked_lm, question_answering, replaced_tokens, tagging
from tests.export.conftest import TAGS, loaded_as


class Adding(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.int32, "x")])
    def add(self, x):
        return {"sum": tf.reduce_sum(x, axis=1), "texts": tf.strings.as_string(x)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path, module = str(tmp_path_factory.mktemp("adding")), Adding()
    tf.saved_model.save(module, path, signatures={"add": module.add})
    return path


def asked(folder, total, signature="add"):
    probe = Probe(signature, {"x": np.array([[1, 2]], np.int32)}, {"sum": np.array([total])})
    return reply(folder, [probe], 0.25)


SIGNATURE = {
    "inputs": {"x": "int32[?, 2]"},
    "outputs": {"sum": "int32[?]", "texts": "string[?, 2]"},
}


def test_findings(folder):
    assert asked(folder, 3.125) == {
        "signatures": {"add": SIGNATURE}, "max_difference": 0.125, "warmup_requests": 0,
    }  # fmt: skip
    loaded = tf.saved_model.load(folder)
    assert describe_signature(loaded.signatures["add"]) == SIGNATURE


def test_whatever_is_wrong_is_an_error(folder, tmp_path):
    assert asked(folder, 4)["error"] == "signature 'add', output 'sum': [3] instead of [4]"
    assert "differs by 2.00e+00, more than 1e+00" in asked(folder, 5.0)["error"]
    assert asked(folder, 3, "other") == {"error": "'other'"}
    assert str(tmp_path) in asked(str(tmp_path), 3)["error"]


def expected_of_questions(config, vocabulary):
    loaded = loaded_as(AlbertSpanLabeler(config), vocabulary, doc_stride=8, max_query_length=12)
    return question_answering.expected(loaded)


def expected_of_tags(config, vocabulary):
    return tagging.expected(
        loaded_as(AlbertTokenClassifier(config, len(TAGS)), vocabulary, labels=TAGS)
    )


def expected_of_masks(config, vocabulary):
    """The answers of a model that is sure: the first pieces are the likeliest, in order."""
    scores = -tf.range(float(config.vocab_size))

    def model(inputs, training):
        places = inputs["masked_lm_positions"]
        logits = tf.broadcast_to(scores, [*places.shape, config.vocab_size])
        return {"masked_lm_logits": logits, "sentence_order_logits": tf.zeros([len(places), 2])}

    return masked_lm.expected(loaded_as(model, vocabulary))


def expected_of_pieces(config, vocabulary):
    return replaced_tokens.expected(loaded_as(AlbertReplacedTokenDetector(config), vocabulary))


@pytest.mark.parametrize(
    ("make_expected", "outputs"),
    [
        (expected_of_questions, (*PLACES, "start", "end", "byte_start", "byte_end", "num_answers")),
        (expected_of_tags, (*PLACES, "num_words")),
        (expected_of_masks, ("positions", "num_masks", "top_ids", "top_pieces")),
        (expected_of_pieces, (*PLACES, "num_pieces", "pieces")),
    ],
)
def test_a_wrong_place_number_or_piece_is_noticed(config, vocabulary, make_expected, outputs):
    right = make_expected(config, vocabulary).answers["serving_default"]
    probe = Probe("serving_default", {}, right)
    assert ask({probe.signature: lambda **inputs: right}, probe, 1e-5) == 0
    for name in outputs:
        changed = {**right, name: right[name].copy()}
        if changed[name].dtype == object:
            changed[name][tuple(np.argwhere(right[name] != b"")[0])] += b"s"
        else:
            changed[name][-1] += 1  # Of the last text alone.
        with pytest.raises(ValueError, match=f"output '{name}': "):
            ask({probe.signature: lambda answer=changed, **inputs: answer}, probe, 1e-5)
