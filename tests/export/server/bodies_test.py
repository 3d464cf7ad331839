"""Bodies of requests and answers, without a server."""

from __future__ import annotations

import json

import flask
import pytest

from export.server.bodies import json_answer, json_body
from export.server.errors import INVALID_ARGUMENT, ServingError


def body_of(data: bytes) -> dict:
    with flask.Flask(__name__).test_request_context(data=data, method="POST"):
        return json_body()


def test_an_object_is_read():
    assert body_of('{"instances": ["é", null]}'.encode()) == {"instances": ["é", None]}


@pytest.mark.parametrize(
    "data, words",
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff\xfe\xfd", "is not JSON"),
        (b"[1]", "should be a JSON object"),
        (b"3", "should be a JSON object"),
    ],
)
def test_anything_else_is_refused(data, words):
    with pytest.raises(ServingError, match=words) as refusal:
        body_of(data)
    assert refusal.value.code == INVALID_ARGUMENT


def test_an_answer():
    answer = json_answer({"error": "é"}, 404)
    assert (answer.status_code, answer.mimetype) == (404, "application/json")
    assert json.loads(answer.get_data()) == {"error": "é"}
