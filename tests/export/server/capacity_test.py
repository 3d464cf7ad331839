"""More requests than a server works on, and clients that hold its connections, files and calls."""

import contextlib
import resource
import threading
import time

import grpc
import pytest
from tensorflow_serving.apis import prediction_service_pb2_grpc

from export.server import listeners
from export.server.turns import Turns
from tests.export.server.listeners_test import call, predict_request, refusal


@contextlib.contextmanager
def calls_without_a_message(port, count):
    """So many calls of one connection, whose messages never come."""
    end = threading.Event()

    def never():
        end.wait()
        yield from ()

    # A connection of its own: channels to one address share theirs otherwise.
    alone = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", alone) as hostile:
        method = hostile.stream_unary("/tensorflow.serving.PredictionService/Predict")
        try:
            yield [method.future(never()) for _ in range(count)]
        finally:
            end.set()


def test_calls_without_a_message_hold_up_nobody(running):
    """More would have taken all of the server's."""
    server, port = listeners.start_grpc(running.store, "127.0.0.1", 0)
    try:
        with calls_without_a_message(port, listeners._CALLS):
            time.sleep(0.5)  # Until those that the server takes have reached it.
            with grpc.insecure_channel(f"127.0.0.1:{port}") as opened:
                stub = prediction_service_pb2_grpc.PredictionServiceStub(opened)
                answer = stub.Predict(predict_request(), 20)
                assert answer.outputs["label"].string_val == [b"short"]
    finally:
        server.stop(0).wait()


def test_calls_without_a_message_end(running, monkeypatch):
    """Their connection is renewed."""
    monkeypatch.setattr(listeners, "_CONNECTION_SECONDS", 1)
    monkeypatch.setattr(listeners, "_LAST_CALLS_SECONDS", 1)
    server, port = listeners.start_grpc(running.store, "127.0.0.1", 0)
    try:
        with calls_without_a_message(port, 3) as calls:
            assert all(call.exception(30) is not None for call in calls)
    finally:
        server.stop(0).wait()


def test_a_server_with_no_turn_left_answers_its_other_pages(running, monkeypatch):
    """Bodies are not read before there is a turn: this one is no JSON."""
    busy = Turns(at_once=1, most_requests=1)
    monkeypatch.setattr(running.store, "turns", busy)
    sentence = "1 requests are at work or wait already. Try again later."
    with busy.turn():
        assert call(running, "/v1/models/tiny:predict", b"{") == (429, {"error": sentence})
        assert call(running, "/healthz")[0] == 200
        assert call(running, "/v1/models/tiny")[0] == 200
    assert call(running, "/v1/models/tiny:predict", b"{")[0] == 400


def test_methods_of_grpc_that_compute_need_a_turn(running, monkeypatch):
    busy = Turns(at_once=1, most_requests=1)
    monkeypatch.setattr(running.store, "turns", busy)
    server, port = listeners.start_grpc(running.store, "127.0.0.1", 0)
    try:
        with busy.turn(), grpc.insecure_channel(f"127.0.0.1:{port}") as opened:
            for name in ("Predict", "Classify", "Regress", "MultiInference"):
                method = opened.unary_unary(f"/tensorflow.serving.PredictionService/{name}")
                assert refusal(method, b"\xff")[0] == "RESOURCE_EXHAUSTED"
            status = opened.unary_unary("/tensorflow.serving.ModelService/GetModelStatus")
            assert refusal(status, b"\xff")[0] == "INVALID_ARGUMENT"  # It was read.
            assert opened.unary_unary("/grpc.health.v1.Health/Check")(b"") == b"\x08\x01"
        with grpc.insecure_channel(f"127.0.0.1:{port}") as opened:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(opened)
            assert stub.Predict(predict_request(), 20).outputs
    finally:
        server.stop(0).wait()


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "connections"),
    [
        (1000, 6000, 6000, 3000),
        (1000, resource.RLIM_INFINITY, 1 << 16, 4096),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None, 4096),
        (1000, 5000, "refused", 500),
    ],
)
def test_rest_leaves_files_to_grpc(monkeypatch, soft, hard, raised, connections):
    limits = [(soft, hard)]

    def set_limits(_, wanted):
        if raised == "refused":
            raise ValueError("not allowed to raise maximum limit")
        limits.append(wanted)

    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", set_limits)
    assert listeners._connection_limit() == connections
    assert limits[1:] == ([(raised, hard)] if isinstance(raised, int) else [])
