"""Every request of docs/serving.md, sent as it stands to the local server."""

import json
import re
from pathlib import Path

import grpc
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from export.client import predict_rows
from export.server.rest import create_app
from tests.export.server.clients import serving_grpc
from tests.export.server.right_requests import EXAMPLES

DOCUMENT = Path(__file__).parents[2] / "docs" / "serving.md"
OF_SQUAD_2 = {"null_score", "threshold"}  # They are told of below the answer.
# Heading of a section -> the task whose model is asked, unless the line names a method.
SECTIONS = {"classifier, regression": "classifier", ":regress": "regression"}


def documented():
    """(task, method, body, row of the answer as it stands in the document) of each request."""
    found = []
    for section in DOCUMENT.read_text(encoding="utf-8").split("\n### ")[1:]:
        heading = section.partition("\n")[0]
        for method, body, row in re.findall(
            r"^POST (:\w+)? *(\{.*\})\n((?: {5}.*\n)+)", section, re.M
        ):
            task = SECTIONS.get(method) or SECTIONS.get(heading, heading)
            found.append((task, method or ":predict", body, row))
    return found


@pytest.fixture(scope="module")
def client(every_store):
    return create_app(every_store).test_client()


@pytest.fixture(scope="module")
def rpc_address(every_store):
    with serving_grpc(every_store) as port:
        yield f"127.0.0.1:{port}"


def test_every_line_with_a_request_is_found():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert len(documented()) == len(re.findall(r"^POST ", text, re.M)) >= 11
    assert len({task for task, *_ in documented()}) == 10


@pytest.mark.parametrize("request_number", range(len(documented())))
def test_a_request_is_answered_as_documented(client, request_number):
    task, method, body, row = documented()[request_number]
    answer = client.post(f"/v1/models/{task}{method}", data=body)
    assert answer.status_code == 200, answer.json
    [got] = answer.json["predictions" if method == ":predict" else "results"]
    names = re.findall(r'"(\w+)": ', row)
    if names:  # "..." stands for more of the same.
        assert sorted(set(got) - OF_SQUAD_2) == sorted(names)
        return
    documented_row = json.loads(row)
    assert type(got) is type(documented_row)
    if isinstance(got, list):
        assert [[type(label), type(score)] for label, score in got] == [[str, float]] * 3


@pytest.mark.parametrize(
    "request_number", [n for n, (_, method, *_) in enumerate(documented()) if method == ":predict"]
)
def test_the_same_row_over_grpc(client, rpc_address, request_number):
    task, method, body, _ = documented()[request_number]
    sent = json.loads(body)
    [row] = sent["instances"]
    signature = sent.get("signature_name", "serving_default")
    if not isinstance(row, dict):  # The value of the only input.
        row = {"words" if signature == "words" else "text": row}
    [got] = predict_rows(f"grpc://{rpc_address}/{task}", [row], signature)
    [expected] = client.post(f"/v1/models/{task}{method}", data=body).json["predictions"]
    if not isinstance(expected, dict):  # REST leaves out the name of a single output.
        expected = dict.fromkeys(got, expected)
    assert sorted(got) == sorted(expected)
    for name, value in expected.items():
        if isinstance(got[name], float) or np.asarray(value).dtype.kind == "f":
            np.testing.assert_allclose(got[name], value, rtol=1e-5, atol=1e-6)
        else:
            assert got[name] == value, name


def test_the_message_of_grpc(rpc_address):
    text = DOCUMENT.read_text(encoding="utf-8")
    message, outputs = re.search(
        r"^(model_spec \{.*?)\n\n(outputs .*?)\n```", text, re.M | re.S
    ).groups()
    request = text_format.Parse(message, predict_pb2.PredictRequest())
    request.model_spec.name = "classifier"
    with grpc.insecure_channel(rpc_address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        answer = stub.Predict(request, 30)
    for name, dtype in re.findall(r'key: "(\w+)" value \{ dtype: (\w+)', outputs):
        assert tf.DType(answer.outputs[name].dtype) == getattr(
            tf, dtype[3:].lower().replace("float", "float32")
        )
    assert tf.make_ndarray(answer.outputs["probabilities"]).shape == (1, 3)


def fields(value):
    """The names of the fields that are set in a message, in the form of the message."""
    if hasattr(value, "ListFields"):
        set_fields = {field.name: fields(each) for field, each in value.ListFields()}
        set_fields.pop("model_spec", None)
        return set_fields
    return None if isinstance(value, str | bytes | int | float) else [*map(fields, value)]


@pytest.mark.parametrize("method", EXAMPLES)
def test_the_messages_of_the_other_methods(rpc_address, method):
    request_class, response_class = EXAMPLES[method]
    asked, answered = re.search(
        rf"`PredictionService/{method}`:\n\n```\n(.*?)\n\n(.*?)\n```",
        DOCUMENT.read_text(encoding="utf-8"),
        re.S,
    ).groups()
    request = text_format.Parse(asked, request_class())
    for each in request.tasks if method == "MultiInference" else [request]:
        each.model_spec.name = "regression" if method == "Regress" else "classifier"
    with grpc.insecure_channel(rpc_address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        answer = getattr(stub, method)(request, 30)
    assert fields(answer) == fields(text_format.Parse(answered, response_class()))
