"""Both servers over the wire: slow, large and hostile clients, and all of TF Serving's methods."""

import contextlib
import json
import re
import socket
import threading
import time
import urllib.error
import urllib.request

import grpc
import pytest
import tensorflow as tf
from google.protobuf import wrappers_pb2
from tensorflow_serving.apis import (
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from data_pipeline.errors import UserError
from export.server import listeners
from export.server.__main__ import reach
from export.server.monitoring import METRICS_PATH

NUMBERS, CLASSIFY = {"signature_name": "numbers"}, {"signature_name": "classify"}


def call(running, path, body=None, seconds=10):
    """(status, JSON) of a REST request; `body` is bytes or a JSON value."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(running.rest + path, data, seconds) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def raw(running):
    """A connection on which HTTP is written by hand."""
    host, port = running.rest.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


@pytest.fixture(scope="module")
def channel(running):
    with grpc.insecure_channel(running.grpc) as opened:
        yield opened


@pytest.fixture(scope="module")
def stub(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


def refusal(method, message):
    """(code, sentence) of a call of gRPC that is refused."""
    with pytest.raises(grpc.RpcError) as error:
        method(message, 20)
    return error.value.code().name, error.value.details()


def predict_request(**spec):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "tiny"
    for name, value in spec.items():
        setattr(request.model_spec, name, value)
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["abc"]))
    return request


def test_reloading_a_config_is_not_there(channel):
    """As export/serving/README.md says."""
    models = model_service_pb2_grpc.ModelServiceStub(channel)
    request = model_management_pb2.ReloadConfigRequest()
    assert refusal(models.HandleReloadConfigRequest, request)[0] == "UNIMPLEMENTED"


def test_half_open_connections_hold_up_nobody(running):
    """Also those that sent half a head, or half a body."""
    opened = [raw(running) for _ in range(240)]
    try:
        for number, connection in enumerate(opened):
            if number % 3:
                connection.sendall(b"POST /v1/models/tiny:predict HTTP/1.1\r\nHost: a\r\n")
            if number % 3 == 2:
                connection.sendall(b"Content-Length: 50\r\n\r\n{")
        start = time.monotonic()
        assert call(running, "/v1/models/tiny:predict", {"instances": ["abc"]})[0] == 200
        assert time.monotonic() - start < 5
    finally:
        for connection in opened:
            connection.close()


def test_a_slow_client_is_answered(running):
    body = b'{"instances": ["abc"]}'
    with raw(running) as connection:
        connection.sendall(
            f"POST /v1/models/tiny:predict HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        )
        for byte in body:
            connection.sendall(bytes([byte]))
            time.sleep(0.005)
        assert b" 200 OK" in connection.recv(100)


def test_a_body_of_100_mb_is_refused_unread(running):
    with raw(running) as connection:
        connection.sendall(
            b"POST /v1/models/tiny:predict HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n"
        )
        head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ") and b"application/json" in head
    assert json.loads(body)["error"] == "Request Entity Too Large: exceeds max_body of 200000."


def test_what_is_not_http_is_refused_in_json(running):
    with raw(running) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n")
        head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ") and set(json.loads(body)) == {"error"}


@pytest.mark.parametrize(
    ("verb", "body", "part"),
    [
        ("predict", b"[" * 100_000, "nested too deeply"),
        ("predict", b'{"instances": ' + b"[" * 900 + b'"a"' + b"]" * 900 + b"}", "8 deep"),
        ("predict", b'{"instances": [' + b"9" * 5000 + b"]}", "not JSON"),
        ("predict", {**NUMBERS, "instances": [{"ids": [2**70], "mask": [1]}]}, "numbers"),
        ("predict", {**NUMBERS, "inputs": {"ids": [[0] * 4097], "mask": [[1]]}}, "4097 values"),
        ("predict", {"instances": ["a"] * 65}, "has 65 rows"),
        ("predict", {"inputs": ["a"] * 65}, "has 65 rows"),
        ("predict", {"instances": ["a" * 2001]}, "a text of 2001 bytes"),
        ("classify", {**CLASSIFY, "examples": [{"text": 2**70}]}, "int64"),
        ("classify", {**CLASSIFY, "examples": [{"text": [[["a"]]]}]}, "tf.Example"),
        ("regress", {"signature_name": "regress", "examples": [{}] * 65}, "has 65 rows"),
        ("regress", {"examples": [{"text": "a"}]}, "not for Regress"),
        ("classify", {**CLASSIFY, "examples": [{"text": "a" * 2000}]}, "2021 bytes"),
    ],
)  # fmt: skip
def test_hostile_bodies_get_a_sentence(running, verb, body, part):
    status, answer = call(running, f"/v1/models/tiny:{verb}", body)
    assert status == 400 and set(answer) == {"error"}
    assert part in answer["error"] and len(answer["error"]) < 500
    assert "Traceback" not in answer["error"]


def test_regress_labels_and_health(running):
    body = {"signature_name": "regress", "examples": [{"text": "abc"}, {"text": "a"}]}
    assert call(running, "/v1/models/tiny:regress", body) == (200, {"results": [3.0, 1.0]})
    for where, version in (
        ("", 2),
        ("/labels/stable", 1),
        ("/labels/canary", 2),
        ("/versions/1", 1),
    ):
        _, answer = call(running, f"/v1/models/tiny{where}:predict", {"instances": ["abc"]})
        assert answer["predictions"][0]["version"] == version
    assert (
        call(running, "/v1/models/tiny/labels/stable/metadata")[1]["model_spec"]["version"] == "1"
    )
    _, state = call(running, "/v1/models/tiny/labels/stable")
    assert [row["version"] for row in state["model_version_status"]] == ["1"]
    status, answer = call(running, "/v1/models/tiny/labels/new:predict", {"instances": ["a"]})
    assert status == 404 and "It has: canary, gone, stable" in answer["error"]
    assert call(running, "/v1/models/tiny/labels/gone")[0] == 404
    assert call(running, "/healthz") == (200, {"status": "SERVING", "models": ["tiny"]})


def test_metrics_are_at_tf_servings_path(running):
    call(running, "/v1/models/tiny:predict", {"instances": ["a"]})
    call(running, "/v1/models/nope:predict", {"instances": ["a"]})
    with urllib.request.urlopen(running.rest + METRICS_PATH) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = response.read().decode()
    assert ':tensorflow:serving:request_count{model_name="tiny",status="OK"}' in text
    assert ':tensorflow:serving:request_count{model_name="",status="NOT_FOUND"}' in text


@pytest.mark.parametrize("power", [18, 28, 40, 62])
def test_a_small_message_with_a_large_claim(stub, power):
    """33 bytes of which a server that believes them makes gigabytes."""
    request = predict_request()
    request.inputs["text"].tensor_shape.dim[0].size = 2**power
    start = time.monotonic()
    code, details = refusal(stub.Predict, request)
    assert code == "INVALID_ARGUMENT" and f"has {2**power} rows" in details
    assert time.monotonic() - start < 5


def test_messages_that_are_none_or_too_large(channel, stub):
    send = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    assert refusal(send, b"\xff" * 9) == ("INVALID_ARGUMENT", "The message is no PredictRequest.")
    assert refusal(send, b"a" * 200_001)[0] == "RESOURCE_EXHAUSTED"
    request = predict_request()
    request.inputs["text"].dtype = 99
    assert refusal(stub.Predict, request) == (
        "INVALID_ARGUMENT", "Input 'text' should be string; received type 99."
    )  # fmt: skip


def test_labels_over_grpc(stub, channel):
    for label, version in (("stable", 1), ("canary", 2)):
        answer = stub.Predict(predict_request(version_label=label), 20)
        assert answer.model_spec.version.value == version
        assert tf.make_ndarray(answer.outputs["version"]).tolist() == [version]
    assert refusal(stub.Predict, predict_request(version_label="new"))[0] == "NOT_FOUND"
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name, request.model_spec.version_label = "tiny", "stable"
    status = model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus(request, 20)
    assert [row.version for row in status.model_version_status] == [1]


def add_example(request, text):
    feature = request.input.example_list.examples.add().features.feature["text"]
    feature.bytes_list.value.append(text)


def counted(running):
    """Number of calls of MultiInference that the server counted for its model."""
    labels = 'model_name="tiny",API="multiinference",entrypoint="GRPC"'
    found = re.findall(f"_latency_count{{{labels}}} (\\d+)", running.monitor.text())
    return int(found[0]) if found else 0


def test_regress_and_multi_inference(running, stub):
    request = regression_pb2.RegressionRequest()
    request.model_spec.name, request.model_spec.signature_name = "tiny", "regress"
    add_example(request, b"abc")
    assert [row.value for row in stub.Regress(request, 20).result.regressions] == [3.0]

    several = inference_pb2.MultiInferenceRequest()
    add_example(several, b"abc")
    assert "one model" in refusal(stub.MultiInference, several)[1]
    for method in ("classify", "regress"):
        task = several.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name, task.model_spec.signature_name = "tiny", method
    before = counted(running)
    first, second = stub.MultiInference(several, 20).results
    assert counted(running) == before + 1
    labels = first.classification_result.classifications[0].classes
    assert [(row.label, row.score) for row in labels] == [("short", 7.0), ("long", 3.0)]
    assert [row.value for row in second.regression_result.regressions] == [3.0]
    assert second.model_spec.version.value == 2
    several.tasks[1].model_spec.signature_name = "classify"
    assert "different signatures" in refusal(stub.MultiInference, several)[1]
    several.tasks[1].model_spec.signature_name = "regress"
    several.tasks[1].method_name = "tensorflow/serving/predict"
    assert "method_name of a task" in refusal(stub.MultiInference, several)[1]


def test_health_is_grpcs_own_protocol(channel):
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    assert check(b"") == b"\x08\x01"  # HealthCheckResponse(status=SERVING).
    named = wrappers_pb2.StringValue(value="tensorflow.serving.ModelService").SerializeToString()
    assert check(named) == b"\x08\x01"
    other = wrappers_pb2.StringValue(value="x").SerializeToString()
    assert refusal(check, other)[0] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("host", "part"),
    [
        ("127.0.0.1", "this machine only"),
        ("::1", "this machine only"),
        ("0.0.0.0", "there is no password"),
    ],
)
def test_the_server_says_who_reaches_it(host, part):
    assert part in reach(host)


def test_an_output_is_asked_for_once(stub):
    request = predict_request()
    request.output_filter.extend(["label", "scores"])
    assert set(stub.Predict(request, 20).outputs) == {"label", "scores"}
    request.output_filter.append("label")
    assert refusal(stub.Predict, request) == (
        "INVALID_ARGUMENT", "output_filter names an output twice."
    )  # fmt: skip


def test_hosts_become_addresses():
    assert listeners.resolved("localhost") == "127.0.0.1"
    assert listeners.resolved("127.0.0.1") == "127.0.0.1"
    for host in ("nowhere.invalid", "a b", "x" * 300):
        with pytest.raises(UserError, match=f"--host={host} is no address of this machine"):
            listeners.resolved(host)


def has_ipv6_loopback() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as found:
        found.bind(("::1", 0))
        return True
    return False


@pytest.mark.skipif(
    not has_ipv6_loopback(), reason="THIS MACHINE HAS NO ::1: nothing listens there"
)
def test_addresses_of_ipv6(running):
    rest, port = listeners.create_rest(running.store, "::1", 0)
    thread = threading.Thread(target=rest.run, daemon=True)
    thread.start()
    rpc, rpc_port = listeners.start_grpc(running.store, "::1", 0)
    try:
        with urllib.request.urlopen(
            f"http://{listeners.address_of('::1', port)}/healthz"
        ) as answer:
            assert answer.status == 200
        with grpc.insecure_channel(listeners.address_of("::1", rpc_port)) as opened:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(opened)
            assert stub.Predict(predict_request(), 20).outputs["label"].string_val == [b"short"]
    finally:
        rest.close()
        rpc.stop(0).wait()


def test_addresses_as_in_urls():
    assert listeners.address_of("::1", 8501) == "[::1]:8501"
    assert listeners.address_of("127.0.0.1", 8501) == "127.0.0.1:8501"
