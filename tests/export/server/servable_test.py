"""A loaded version: requests that fit its signatures, and what is said to others."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from export.probes import example_of
from export.server.refusals import Limits, ServingError
from export.server.servable import Servable


class Halves(tf.Module):
    """Halves even numbers; odd ones are an error of the graph."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, "number")])
    def half(self, number):
        even = tf.debugging.assert_equal(number % 2, 0, "Only even numbers have halves.")
        with tf.control_dependencies([even]):
            return {"half": number // 2}


@pytest.fixture(scope="module")
def servable(tmp_path_factory) -> Servable:
    path = str(tmp_path_factory.mktemp("halves"))
    module = Halves()
    tf.saved_model.save(module, path, signatures={"serving_default": module.half})
    return Servable("halves", 4, path, Limits(max_batch_size=3, max_answer_values=2))


def test_answers(servable):
    for signature in ("", "serving_default"):
        answer = servable.predict(signature, {"number": np.array([2, 8])})
        np.testing.assert_array_equal(answer["half"], [1, 4])
    assert list(servable.signature_defs) == ["serving_default"]


@pytest.mark.parametrize(
    "signature, inputs, words",
    [
        ("other", {"number": np.array([2])}, "has no signature 'other'. It has: serving_default"),
        ("", {}, "takes the inputs number; received none"),
        ("", {"number": np.array([2]), "b": 1, "a": 1}, "number; received a, b, number"),
        ("", {"number": np.array(["x"], object)}, "Input 'number' should be int32"),
        ("", {"number": np.array([[2]])}, r"should have the shape \(None,\); received \(1, 1\)"),
        ("", {"number": np.array([2] * 4)}, "has 4 rows; this server allows up to 3"),
        ("", {"number": np.array([2, 3])}, "Model 'halves': .*Only even numbers"),
        ("", {"number": np.array([2] * 3)}, "3 values; .* up to 2 .*--max_answer_values"),
    ],
)
def test_what_does_not_fit(servable, signature, inputs, words):
    with pytest.raises(ServingError, match=words) as refusal:
        servable.predict(signature, inputs)
    assert refusal.value.code == "INVALID_ARGUMENT"


def test_too_little_memory(servable, monkeypatch):
    def fail(**_):
        raise MemoryError

    monkeypatch.setattr(servable, "_loaded", tf.Module())
    servable._loaded.signatures = {"serving_default": fail}
    with pytest.raises(ServingError, match="needs more memory") as refusal:
        servable.predict("", {"number": np.array([2])})
    assert refusal.value.code == "RESOURCE_EXHAUSTED"


@pytest.fixture(scope="module")
def lengths(tiny) -> Servable:
    return Servable("lengths", 2, str(tiny / "2"))


EXAMPLES = [example_of({"text": "abc"}).SerializeToString()]


def test_classes_or_scores_may_be_missing(lengths, monkeypatch):
    """As in TF Serving: classes are empty then, scores zeros."""
    given = {"scores": np.float32([[1, 2]])}
    monkeypatch.setattr(lengths, "predict", lambda *_: given)
    assert lengths.classify("classify", EXAMPLES) == [[("", 1.0), ("", 2.0)]]
    given = {"classes": np.array([[b"a"]], object)}
    assert lengths.classify("classify", EXAMPLES) == [[("a", 0.0)]]


@pytest.mark.parametrize("method, name", [("classify", "regress"), ("regress", "classify")])
def test_other_signatures_are_refused_and_those_that_fit_named(lengths, method, name):
    ask = getattr(lengths, method)
    for signature in (name, "", "numbers"):
        told = f"Signature '{signature or 'serving_default'}' of model 'lengths' is not for "
        with pytest.raises(ServingError, match=f"{told}.*These are: {method}\\.$") as refusal:
            ask(signature, EXAMPLES)
        assert refusal.value.code == "INVALID_ARGUMENT"
