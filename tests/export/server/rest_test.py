"""The REST API, asked through Flask's test client and over the wire."""

import gzip
import json
import urllib.request

import numpy as np
import pytest
import tensorflow as tf

from export.encoding import encode_batch
from export.server.monitoring import METRICS_PATH
from export.server.rest import create_app
from tests.export.server.clients import PREDICT, call

TEXTS = ["the cat", "Café in 2010, 3.0"]
NUMBERS, CLASSIFY = {"signature_name": "numbers"}, {"signature_name": "classify"}


@pytest.fixture(scope="module")
def client(store):
    return create_app(store).test_client()


def test_row_and_column_format_equal_keras(client, exports):
    inputs = encode_batch(exports.vocabulary, TEXTS, 48)
    logits = exports.models["classifier"](inputs, training=False)
    rows = client.post("/v1/models/topics:predict", json={"instances": TEXTS})
    assert rows.status_code == 200
    assert rows.mimetype == "application/json"
    np.testing.assert_allclose(
        [row["logits"] for row in rows.json["predictions"]], logits, atol=1e-5
    )
    columns = client.post("/v1/models/topics/versions/1:predict", json={"inputs": {"text": TEXTS}})
    np.testing.assert_allclose(columns.json["outputs"]["logits"], logits, atol=1e-5)
    assert columns.json["outputs"]["label"] == [row["label"] for row in rows.json["predictions"]]


def test_status_and_metadata(client):
    version = {
        "version": "1",
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    for path in ("/v1/models/topics", "/v1/models/topics/versions/1"):
        assert client.get(path).json == {"model_version_status": [version]}
    metadata = client.get("/v1/models/topics/metadata").json
    assert metadata["model_spec"] == {"name": "topics", "signature_name": "", "version": "1"}
    signatures = metadata["metadata"]["signature_def"]["signature_def"]
    assert set(signatures) == {"serving_default", "text_pair", "tokens", "classify"}
    assert signatures["serving_default"]["inputs"]["text"]["dtype"] == "DT_STRING"
    scores = signatures["classify"]["outputs"]["scores"]
    assert scores["dtype"] == "DT_FLOAT"
    assert [dim["size"] for dim in scores["tensor_shape"]["dim"]] == ["-1", "3"]


@pytest.mark.parametrize(
    ("verb", "body", "part"),
    [
        ("predict", b"", "is not JSON"),
        ("predict", b"{oops", "is not JSON"),
        ("predict", b"\xff\xfe\xfd", "is not JSON"),
        ("predict", [], "should be a JSON object"),
        ("predict", b"[" * 100_000, "nested too deeply"),
        ("predict", b'{"instances": ' + b"[" * 900 + b'"a"' + b"]" * 900 + b"}", "8 deep"),
        ("predict", b'{"instances": [' + b"9" * 5000 + b"]}", "a number with thousands of digits."),
        ("predict", {}, "either 'instances' (rows) or 'inputs'"),
        ("predict", {"instances": ["a"], "inputs": ["a"]}, "either 'instances' (rows)"),
        ("predict", {"signature_name": 3, "instances": ["a"]}, "should be a string, not 3"),
        ("predict", {"instances": []}, "at least one"),
        ("predict", {"instances": ["a", ["b"]]}, "'text'"),
        ("predict", {"signature_name": "text_pair", "inputs": {"text_a": ["a"]}}, "text_a, text_b"),
        ("predict", {**NUMBERS, "inputs": {"ids": [[0] * 4097], "mask": [[1]]}}, "4097 values"),
        ("predict", {"instances": ["a" * 2001]}, "a text of 2001 bytes"),
        ("explain", {}, "Use :predict, :classify or :regress"),
        ("classify", {"examples": [{"text": "a"}]}, "not for Classify"),
        ("regress", {"examples": [{"text": "a"}]}, "not for Regress"),
        ("classify", {**CLASSIFY, "examples": [{"txt": "a"}]}, "text"),
        ("classify", {**CLASSIFY, "examples": ["a"]}, "should be an object"),
        ("classify", {**CLASSIFY, "examples": [{}], "context": 1}, "should be an object"),
        ("classify", {**CLASSIFY, "examples": []}, "at least one"),
        ("classify", {**CLASSIFY, "examples": [{"text": 2**70}]}, "int64"),
        ("classify", {**CLASSIFY, "examples": [{"text": [[["a"]]]}]}, "tf.Example"),
        ("classify", {**CLASSIFY, "examples": [{"text": "a" * 2000}]}, "2021 bytes"),
        ("regress", {"signature_name": "regress", "examples": [{}] * 65}, "has 65 rows"),
    ],
)  # fmt: skip
def test_bad_bodies_get_a_sentence(running, verb, body, part):
    status, answer = call(running, f"/v1/models/tiny:{verb}", body)
    assert status == 400 and set(answer) == {"error"}
    assert part in answer["error"] and len(answer["error"]) < 500
    assert "Traceback" not in answer["error"] and "sys." not in answer["error"]


@pytest.mark.parametrize(
    ("path", "body", "status", "part"),
    [
        ("/v1/models/other:predict", {"instances": ["a"]}, 404, "Served: tiny"),
        ("/v1/models/tiny/versions/9:predict", {"instances": ["a"]}, 404, "version 1, 2 is"),
        ("/v1/models/tiny/labels/new:predict", {"instances": ["a"]}, 404, "canary, gone, stable"),
        ("/v1/models/tiny/labels/gone", None, 404, "Version 9 of model 'tiny'"),
        ("/", None, 404, "Known: GET /v1/models/NAME"),
        ("/v1/models/tiny/x", None, 404, "Known: GET /v1/models/NAME"),
        ("/v1/models/tiny", {}, 405, "Use GET. Known: "),
        ("/v1/models/tiny:predict", None, 405, "Use POST. Known: "),
        ("/v1/models/tiny/versions/1:predict", None, 405, "Use POST. Known: "),
        ("/v1/models/tiny/labels/stable:classify", None, 405, "Use POST. Known: "),
        *(
            (f"/v1/models/tiny/versions/{version}{verb}", body, 404, "Malformed request")
            for version in ("9" * 5000, "9" * 20, "x", "-1", "%C2%B2")
            for verb, body in (("", None), (":predict", {"instances": ["a"]}))
        ),
        (f"/v1/models/tiny/versions/{2**63 - 1}", None, 404, "does not exist"),
    ],
)
def test_other_paths(running, path, body, status, part):
    received, answer = call(running, path, body)
    assert received == status and part in answer["error"] and len(answer["error"]) < 600


def test_a_compressed_body_is_refused_by_its_header(running):
    body = gzip.compress(json.dumps({"instances": ["abc"]}).encode())
    request = urllib.request.Request(running.rest + PREDICT, body, {"Content-Encoding": "gzip"})
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(request)
    told = json.load(refusal.value)["error"]
    assert refusal.value.code == 400
    assert told == "Content-Encoding 'gzip' is not supported: send plain JSON."


def test_examples_with_a_context(running):
    body = {**CLASSIFY, "examples": [{"n": 3}, {"x": [1, 2.5]}], "context": {"text": "abc"}}
    row = [["short", 7.0], ["long", 3.0]]
    assert call(running, "/v1/models/tiny:classify", body) == (200, {"results": [row, row]})
    body = {**CLASSIFY, "examples": [{"n": 1}] * 50, "context": {"m": ["a" * 1990] * 3}}
    status, answer = call(running, "/v1/models/tiny:classify", body)
    assert status == 400 and "up to 200000 (--max_request_bytes)" in answer["error"]


def test_features_keep_their_kinds(running, monkeypatch):
    servable, asked = running.store.get("tiny"), []
    monkeypatch.setattr(servable, "regress", lambda _, examples: asked.extend(examples) or [0.0])
    features = {"text": "a", "n": 3, "x": [1, 2.5], "languages": ["en", {"b64": "/w=="}]}
    body = {"signature_name": "regress", "examples": [features]}
    assert call(running, "/v1/models/tiny:regress", body) == (200, {"results": [0.0]})
    made = tf.train.Example.FromString(asked[0]).features.feature
    assert list(made["text"].bytes_list.value) == [b"a"]
    assert list(made["languages"].bytes_list.value) == [b"en", b"\xff"]
    assert list(made["n"].int64_list.value) == [3]
    assert list(made["x"].float_list.value) == [1.0, 2.5]


def test_metadata_and_status_by_label_and_health(running):
    _, found = call(running, "/v1/models/tiny/labels/stable/metadata")
    assert found["model_spec"]["version"] == "1"
    _, state = call(running, "/v1/models/tiny/labels/stable")
    assert [row["version"] for row in state["model_version_status"]] == ["1"]
    assert call(running, "/healthz") == (200, {"status": "SERVING", "models": ["tiny"]})


def test_metrics_are_at_tf_servings_path(running):
    call(running, "/v1/models/tiny:predict", {"instances": ["a"]})
    call(running, "/v1/models/nope:predict", {"instances": ["a"]})
    with urllib.request.urlopen(running.rest + METRICS_PATH) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = response.read().decode()
    assert ':tensorflow:serving:request_count{model_name="tiny",status="OK"}' in text
    assert ':tensorflow:serving:request_count{model_name="",status="NOT_FOUND"}' in text
