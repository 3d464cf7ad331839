"""The REST API, asked through Flask's test client."""

import numpy as np
import pytest

from export.encoding import encode_batch
from export.server.rest import create_app

TEXTS = ["the cat", "Café in 2010, 3.0"]


@pytest.fixture(scope="module")
def client(store):
    return create_app(store).test_client()


@pytest.fixture(scope="module")
def expected(exports):
    inputs = encode_batch(exports.vocabulary, TEXTS, 48)
    return inputs, exports.models["classifier"](inputs, training=False).numpy()


def test_row_and_column_format_equal_keras(client, expected):
    _, logits = expected
    rows = client.post("/v1/models/topics:predict", json={"instances": TEXTS})
    assert rows.status_code == 200
    assert rows.mimetype == "application/json"
    np.testing.assert_allclose(
        [row["logits"] for row in rows.json["predictions"]], logits, atol=1e-5
    )
    columns = client.post("/v1/models/topics/versions/1:predict", json={"inputs": {"text": TEXTS}})
    np.testing.assert_allclose(columns.json["outputs"]["logits"], logits, atol=1e-5)
    assert columns.json["outputs"]["label"] == [row["label"] for row in rows.json["predictions"]]


def test_tokens_signature(client, expected):
    inputs, logits = expected
    body = {
        "signature_name": "tokens",
        "inputs": {name: value.tolist() for name, value in inputs.items()},
    }
    answer = client.post("/v1/models/topics:predict", json=body)
    np.testing.assert_allclose(answer.json["outputs"]["logits"], logits, atol=1e-5)


def test_masked_lm(client):
    body = {"instances": [{"text": "the [MASK]."}, {"text": "a"}]}
    rows = client.post("/v1/models/words:predict", json=body).json["predictions"]
    assert [row["num_masks"] for row in rows] == [1, 0]
    assert len(rows[0]["top_pieces"][0]) == 5


def test_classify(client, expected):
    _, logits = expected
    body = {
        "signature_name": "classify",
        "examples": [{"text": TEXTS[0]}, {"text": [TEXTS[1]], "text_b": ""}],
    }
    results = client.post("/v1/models/topics:classify", json=body).json["results"]
    assert [[label for label, _ in row] for row in results] == [["red", "green", "blå"]] * 2
    scores = np.array([[score for _, score in row] for row in results])
    np.testing.assert_allclose(
        scores, np.exp(logits) / np.exp(logits).sum(1, keepdims=True), atol=1e-5
    )


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
    ("path", "body", "status", "part"),
    [
        ("other:predict", {"instances": ["a"]}, 404, "Served: topics, words"),
        ("topics/versions/9:predict", {"instances": ["a"]}, 404, "version 1 is"),
        ("topics:explain", {"instances": ["a"]}, 400, ":classify or :regress"),
        ("topics:predict", {}, 400, "either 'instances' (rows) or 'inputs'"),
        ("topics:predict", {"instances": ["a"], "inputs": ["a"]}, 400, "either"),
        ("topics:predict", {"instances": []}, 400, "at least one"),
        ("topics:predict", {"instances": [3]}, 400, "should hold strings"),
        ("topics:predict", {"instances": ["a", ["b"]]}, 400, "'text'"),
        ("topics:predict", {"instances": [["a"]]}, 400, "should have the shape"),
        ("topics:predict", {"inputs": {"txt": ["a"]}}, 400, "allowed: text"),
        ("topics:predict", {"inputs": {"text": "a"}}, 400, "should have the shape"),
        (
            "topics:predict",
            {"signature_name": "x", "instances": ["a"]},
            400,
            "classify, serving_default",
        ),
        ("topics:predict", {"signature_name": 3, "instances": ["a"]}, 400, "should be a string"),
        (
            "topics:predict",
            {"signature_name": "text_pair", "inputs": {"text_a": ["a"]}},
            400,
            "text_a, text_b",
        ),
        ("topics:predict", [], 400, "JSON object"),
        ("topics:classify", {"examples": [{"text": "a"}]}, 400, "not for Classify"),
        (
            "topics:classify",
            {"signature_name": "classify", "examples": [{"txt": "a"}]},
            400,
            "text",
        ),
        ("topics:classify", {"signature_name": "classify", "examples": ["a"]}, 400, "object"),
        ("topics:classify", {"signature_name": "classify", "examples": []}, 400, "at least one"),
    ],
)
def test_bad_requests_are_explained(client, path, body, status, part):
    answer = client.post(f"/v1/models/{path}", json=body)
    assert answer.status_code == status
    assert set(answer.json) == {"error"}
    assert part in answer.json["error"]


def test_token_ids_beyond_the_vocabulary(client):
    body = {"signature_name": "tokens", "instances": [
        {"input_word_ids": [2, 5000, 3], "input_mask": [1, 1, 1], "input_type_ids": [0, 0, 0]}
    ]}  # fmt: skip
    answer = client.post("/v1/models/topics:predict", json=body)
    assert answer.status_code == 400
    assert "input_word_ids are from 0 to" in answer.json["error"]


def test_other_paths_and_bodies(client):
    assert client.post("/v1/models/topics:predict", data=b"{oops").status_code == 400
    for answer in (
        client.get("/"),
        client.get("/v1/models/topics/x"),
        client.post("/v1/models/topics"),
    ):
        assert answer.status_code in (404, 405)
        assert "Known: GET /v1/models/NAME" in answer.json["error"]
