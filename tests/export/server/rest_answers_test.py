"""JSON bodies in, JSON values out, of a model that is made up."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from export.server import rest_answers
from export.server.errors import ServingError
from export.server.limits import Limits


class Lengths:
    """A model that answers a text with its length in bytes, and notes the examples it is sent."""

    name, version, limits = "lengths", 3, Limits(max_batch_size=2)

    def __init__(self) -> None:
        self.examples: list[tf.train.Example] = []
        text, length = meta_graph_pb2.SignatureDef().inputs["text"], meta_graph_pb2.TensorInfo()
        text.dtype, length.dtype = types_pb2.DT_STRING, types_pb2.DT_INT64
        for info in (text, length):
            info.tensor_shape.dim.add(size=-1)
        self.signature_defs = {
            "serving_default": meta_graph_pb2.SignatureDef(
                inputs={"text": text}, outputs={"length": length}, method_name="predict"
            )
        }

    def signature_def(self, signature: str) -> meta_graph_pb2.SignatureDef:
        return self.signature_defs[signature or "serving_default"]

    def predict(self, signature, inputs) -> dict[str, np.ndarray]:
        return {"length": np.array([len(text) for text in inputs["text"]])}


@pytest.fixture
def lengths() -> Lengths:
    return Lengths()


def test_rows_and_columns(lengths):
    predict = rest_answers.predict_answer
    assert predict(lengths, {"instances": ["a", "bé"]}) == {"predictions": [1, 3]}
    assert predict(lengths, {"instances": [{"text": "abc"}]}) == {"predictions": [3]}
    assert predict(lengths, {"inputs": {"text": ["a", "bb"]}}) == {"outputs": [1, 2]}


@pytest.mark.parametrize(
    "body, words",
    [
        ({}, "either 'instances' .rows. or 'inputs'"),
        ({"instances": ["a"], "inputs": ["a"]}, "either 'instances' .rows. or 'inputs'"),
        ({"instances": ["a"] * 3}, "The request has 3 rows; this server takes up to 2"),
        ({"instances": ["a"], "signature_name": 7}, "'signature_name' should be a string, not 7"),
    ],
)
def test_bodies_that_are_refused(lengths, body, words):
    with pytest.raises(ServingError, match=words):
        rest_answers.predict_answer(lengths, body)


def test_classes_and_numbers_of_examples(lengths, monkeypatch):
    def classify(servable, signature, examples):
        servable.examples = [tf.train.Example.FromString(each) for each in examples]
        return np.array([[b"yes", b"no"]] * len(examples)), np.array([[0.75, 0.25]] * len(examples))

    monkeypatch.setattr(rest_answers, "classify", classify)
    monkeypatch.setattr(rest_answers, "regress", lambda *_: np.float32([0.5, 2]))
    body = {"examples": [{"text": "a", "n": 3}, {"x": [1, 2.5]}], "context": {"language": ["en"]}}
    pairs = [["yes", 0.75], ["no", 0.25]]
    assert rest_answers.classify_answer(lengths, body) == {"results": [pairs, pairs]}
    assert rest_answers.regress_answer(lengths, body) == {"results": [0.5, 2.0]}
    first, second = (example.features.feature for example in lengths.examples)
    assert list(first["text"].bytes_list.value) == [b"a"]
    assert list(first["n"].int64_list.value) == [3]
    assert list(second["x"].float_list.value) == [1.0, 2.5]
    assert list(first["language"].bytes_list.value) == [b"en"]


@pytest.mark.parametrize(
    "body, words",
    [
        ({"examples": []}, "a list with at least one element"),
        ({"examples": [{}] * 3}, "has 3 rows"),
        ({"examples": ["text"]}, "Each example should be an object"),
        ({"examples": [{}], "context": 1}, "Each example should be an object"),
        ({"examples": [{"n": 1 << 70}]}, "Feature 'n' does not fit a tf.Example"),
    ],
)
def test_examples_that_are_refused(lengths, body, words):
    with pytest.raises(ServingError, match=words):
        rest_answers.classify_answer(lengths, body)


def test_versions_and_signatures(lengths):
    status = rest_answers.status_answer([(3, "AVAILABLE", "OK", ""), (2, "END", "UNKNOWN", "bad")])
    assert [row["version"] for row in status["model_version_status"]] == ["3", "2"]
    assert status["model_version_status"][1]["status"] == {
        "error_code": "UNKNOWN",
        "error_message": "bad",
    }
    answer = rest_answers.metadata_answer(lengths)
    assert answer["model_spec"] == {"name": "lengths", "signature_name": "", "version": "3"}
    signature = answer["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["method_name"] == "predict"
    assert signature["inputs"]["text"]["dtype"] == "DT_STRING"
    shape = {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}
    assert signature["outputs"]["length"]["tensor_shape"] == shape


def test_what_examples_share_counts_for_each_of_them(lengths, monkeypatch):
    monkeypatch.setattr(lengths, "limits", Limits(max_request_bytes=1500, max_batch_size=2))
    body = {"examples": [{"n": 1}, {"n": 2}], "context": {"text": "a" * 1000}}
    with pytest.raises(ServingError, match="what they share make more than 1500 bytes"):
        rest_answers.classify_answer(lengths, body)
