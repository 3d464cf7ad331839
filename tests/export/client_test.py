"""What the client sends to each kind of model, and what it makes of answers and failures."""

import contextlib
import io
import json
import urllib.error
import urllib.request

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.errors import UserError
from export import client


@pytest.fixture
def http(monkeypatch):
    """A list of what is asked over HTTP; its answer, or the error raised, is set beforehand."""

    class Asked(list):
        answer = b'{"predictions": [1, 2]}'

    asked = Asked()

    def urlopen(request, timeout):
        body = json.loads(request.data)
        asked.append((request.full_url, request.get_header("Content-type"), body, timeout))
        if isinstance(asked.answer, Exception):
            raise asked.answer
        return contextlib.closing(io.BytesIO(asked.answer))

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    return asked


def test_rows_are_posted(http):
    assert client.predict_rest("http://host:1/", "topics", ("a", "b")) == [1, 2]
    assert client.predict_rest("http://host:1", "m", [{"x": 1}], "tokens", 2.5) == [1, 2]
    first = {"signature_name": "serving_default", "instances": ["a", "b"]}
    second = {"signature_name": "tokens", "instances": [{"x": 1}]}
    assert http == [
        ("http://host:1/v1/models/topics:predict", "application/json", first, 60.0),
        ("http://host:1/v1/models/m:predict", "application/json", second, 2.5),
    ]


def test_failures_of_http_are_one_sentence(http):
    address = "http://h/v1/models/m:predict"
    http.answer = urllib.error.HTTPError(address, 404, "", {}, io.BytesIO(b"no \xff model"))
    with pytest.raises(UserError, match=f"^{address} answered 404: no \ufffd model$"):
        client.predict_rest("http://h", "m", ["a"])
    for other in (b"<html>", b"[1]", b'{"outputs": 1}'):
        http.answer = other
        with pytest.raises(UserError, match=f"^{address} answered without `predictions`"):
            client.predict_rest("http://h", "m", ["a"])
    for error in (urllib.error.URLError("refused"), ConnectionResetError("refused")):
        http.answer = error
        with pytest.raises(UserError, match=f"^{address} does not answer: refused. Is the server"):
            client.predict_rest("http://h", "m", ["a"])
    http.answer = TimeoutError("timed out")
    with pytest.raises(UserError, match=f"^{address} has not answered in 2.5 seconds. Ask for few"):
        client.predict_rest("http://h", "m", ["a"], timeout=2.5)


def test_addresses_and_names_are_quoted_or_refused():
    with pytest.raises(UserError, match="85x1/v1/models/m:predict is not an address: nonnumeric"):
        client.predict_rest("http://127.0.0.1:85x1", "m", ["a"])
    with pytest.raises(UserError, match="127.0.0.1:9/v1/models/caf%C3%A9%20one:predict does not"):
        client.predict_rest("http://127.0.0.1:9", "café one", ["a"])
    for model in ("café one", "caf%C3%A9%20one"):  # As people write it, and as the page does.
        with pytest.raises(UserError, match="127.0.0.1:9/v1/models/caf%C3%A9%20one:predict does"):
            client.predict_rows(f"http://127.0.0.1:9/v1/models/{model}", [{"text": "a"}])
    with pytest.raises(UserError, match="is not an address: .*label"):
        client.predict_rest("http://a..b:1", "m", ["a"])


class Adding(tf.Module):
    """Adds a number, under two signatures."""

    def __init__(self, number):
        super().__init__()
        self.number = tf.constant(number)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, "x")])
    def add(self, x):
        return {"sum": x + self.number}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, "x")])
    def subtract(self, x):
        return {"difference": x - self.number}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Versions 9 and 10, which add 9 and 10."""
    folder = tmp_path_factory.mktemp("saved")
    for number in (9, 10):
        module = Adding(number)
        signatures = {"serving_default": module.add, "less": module.subtract}
        tf.saved_model.save(module, str(folder / str(number)), signatures=signatures)
    return folder


def test_the_highest_version_is_asked_unless_one_is_named(saved):
    [(name, value)] = client.predict_saved_model(str(saved), {"x": [1, 2]}).items()
    assert name == "sum" and value.tolist() == [11, 12] and isinstance(value, np.ndarray)
    found = client.predict_saved_model(str(saved / "9"), {"x": np.array([1], np.int32)}, "less")
    assert {name: value.tolist() for name, value in found.items()} == {"difference": [-8]}


def test_what_is_no_saved_model_is_named(saved, tmp_path):
    with pytest.raises(UserError, match=f"^{tmp_path} is not a SavedModel: it holds no "):
        client.predict_saved_model(str(tmp_path), {})
    message = f"^{saved}/10 has no signature 'x'. It has: less, serving_default.$"
    with pytest.raises(UserError, match=message):
        client.predict_saved_model(str(saved), {}, "x")


@pytest.fixture
def doors(monkeypatch):
    """A list of the calls of the three ways to ask."""
    calls = []
    outputs = {"label": np.array([b"a", b"\xff"], object), "top": np.array([[[b"b"]], [[b"c"]]])}
    answers = {
        "predict_rest": [{"label": "a"}, 3.5],
        "predict_grpc": outputs,
        "predict_saved_model": outputs,
    }
    for name, answer in answers.items():

        def ask(*arguments, name=name, answer=answer):
            calls.append((name, *arguments))
            return answer

        monkeypatch.setattr(client, name, ask)
    return calls


# The name of a single output is left out over HTTP, as in the second row.
OVER_HTTP = [{"label": "a"}, {"value": 3.5}]
ROWS = [{"label": "a", "top": [["b"]]}, {"label": "\ufffd", "top": [["c"]]}]


def test_rows_by_each_door(doors):
    texts = [{"text": "a"}, {"text": "b"}]
    pairs = [{"text_a": "a", "text_b": "c"}, {"text_a": "b", "text_b": "d"}]
    assert client.predict_rows("http://h:1/v1/models/m", texts) == OVER_HTTP
    assert client.predict_rows("https://h/v1/models/m/", pairs[:1], "text_pair") == OVER_HTTP
    assert client.predict_rows("grpc://h:1/m", texts) == ROWS
    assert client.predict_rows("/exports/m", pairs, "text_pair") == ROWS
    assert doors == [
        ("predict_rest", "http://h:1", "m", texts, "serving_default"),
        ("predict_rest", "https://h", "m", pairs[:1], "text_pair"),
        ("predict_grpc", "h:1", "m", {"text": ["a", "b"]}, "serving_default"),
        ("predict_saved_model", "/exports/m", {"text_a": ["a", "b"], "text_b": ["c", "d"]},
         "text_pair"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "model, message",
    [
        ("http://h:1", "--model=http://h:1 should look like http://HOST:PORT/v1/models/NAME."),
        ("http://h:1/v1/models/", "--model=http://h:1/v1/models/ should look like http://HOST"),
        ("grpc://h:1", "--model=grpc://h:1 should look like grpc://HOST:PORT/NAME."),
        ("grpc://h:1/", "--model=grpc://h:1/ should look like grpc://HOST:PORT/NAME."),
    ],
)
def test_addresses_without_a_name_are_refused(doors, model, message):
    with pytest.raises(UserError) as error:
        client.predict_rows(model, [{"text": "a"}])
    assert str(error.value).startswith(message) and not doors
