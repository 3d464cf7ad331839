"""Both servers over the wire: their addresses, slow and large clients, and how they end."""

import contextlib
import http.client
import json
import socket
import threading
import time
import urllib.request

import flask
import grpc
import pytest
from tensorflow_serving.apis import prediction_service_pb2_grpc

from data_pipeline.errors import UserError
from export.server import grpc_service, listeners
from export.server.__main__ import describe_exposure
from export.server.refusals import Limits
from export.server.rest import create_app
from tests.export.server.clients import PREDICT, call, predict_request, raw, serving_grpc


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
        assert call(running, PREDICT, {"instances": ["abc"]})[0] == 200
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


def whole(size):
    return b"a" * size


def chunked(size):
    """The same in chunks, whose sum the server is not told beforehand."""
    return (b"a" * 10_000 for _ in range(size // 10_000))


@pytest.mark.parametrize("body", [whole, chunked])
def test_a_body_over_the_limit_is_sent_and_refused(running, body):
    """By a client that sends all of it before it reads."""
    connection = http.client.HTTPConnection(running.rest.removeprefix("http://"), timeout=60)
    connection.request("POST", PREDICT, body(700_000), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    sentence = "The body has more than 200000 bytes (--max_request_bytes). Send less."
    assert (answer.status, json.loads(answer.read())) == (413, {"error": sentence})
    assert call(running, PREDICT, {"instances": ["abc"]})[0] == 200


def test_a_body_of_100_mb_is_refused_unread(running):
    """By waitress, in its own words."""
    with raw(running) as connection:
        connection.sendall(
            f"POST {PREDICT} HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n".encode()
        )
        head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ") and b"exceeds max_body of 800000" in body


def test_what_is_not_http_is_refused(running):
    with raw(running) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n")
        assert connection.makefile("rb").read().startswith(b"HTTP/1.1 400 ")


def test_an_idle_connection_is_closed(monkeypatch):
    monkeypatch.setattr(listeners, "_IDLE_SECONDS", 1)
    monkeypatch.setattr(listeners, "_CLEANUP_SECONDS", 1)
    server = listeners.RestServer(flask.Flask("idle"), "127.0.0.1", 0, Limits())
    server.start()
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        assert connection.recv(1) == b""
    server.stop()


class Slow:
    """An application whose requests wait until they are let go, and a server of it."""

    def __init__(self):
        self.begun, self.let_go = threading.Semaphore(0), threading.Event()
        app = flask.Flask("slow")

        @app.get("/")
        def answer():
            self.begun.release()
            self.let_go.wait(30)
            return "a" * 8_000_000  # More than a socket takes at once.

        self.server = listeners.RestServer(app, "127.0.0.1", 0, Limits())
        self.server.start()

    def get(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        connection.request("GET", "/")
        return connection.getresponse()


def test_requests_that_have_begun_are_answered_and_further_ones_refused():
    slow, answers = Slow(), []
    clients = [threading.Thread(target=lambda: answers.append(slow.get().read())) for _ in "ab"]
    for client in clients:
        client.start()
        assert slow.begun.acquire(timeout=30)
    end = threading.Thread(target=slow.server.stop)
    end.start()
    while not slow.server._is_ending:
        time.sleep(0.01)
    refused = slow.get()
    assert refused.status == 503 and "is ending" in json.loads(refused.read())["error"]
    assert end.is_alive()
    slow.let_go.set()
    end.join(30)
    assert not end.is_alive()
    for client in clients:
        client.join(30)
    assert [len(answer) for answer in answers] == [8_000_000] * 2
    with pytest.raises(ConnectionError):
        slow.get()


def test_an_end_does_not_wait_for_a_client_that_does_not_read(monkeypatch):
    slow = Slow()
    slow.let_go.set()
    with socket.create_connection(("127.0.0.1", slow.server.port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert slow.begun.acquire(timeout=30)
        monkeypatch.setattr(listeners, "_IDLE_SECONDS", 1)
        start = time.monotonic()
        slow.server.stop()
        assert 1 <= time.monotonic() - start < 10


def test_calls_whose_message_never_comes_end(running, monkeypatch):
    """Their connection is renewed."""
    monkeypatch.setattr(grpc_service, "_CONNECTION_SECONDS", 1)
    monkeypatch.setattr(grpc_service, "_LAST_CALLS_SECONDS", 1)
    end = threading.Event()

    def never():
        end.wait()
        yield from ()

    with serving_grpc(running.store) as port, grpc.insecure_channel(f"127.0.0.1:{port}") as opened:
        method = opened.stream_unary("/tensorflow.serving.PredictionService/Predict")
        assert method.future(never()).exception(30) is not None
        end.set()


def test_pages_that_compute_nothing_are_answered_while_all_cores_compute(running, monkeypatch):
    monkeypatch.setattr(running.store, "computing", threading.BoundedSemaphore(1))
    app = create_app(running.store).test_client()
    answered = []
    with running.store.computing:
        asking = threading.Thread(
            target=lambda: answered.append(app.post(PREDICT, json={"instances": ["abc"]}))
        )
        asking.start()
        assert app.get("/healthz").status_code == 200
        assert app.get("/v1/models/tiny").status_code == 200
        asking.join(0.2)
        assert not answered
    asking.join(30)
    assert answered[0].status_code == 200


def test_the_server_says_who_reaches_it():
    for host in ("127.0.0.1", "::1"):
        assert "this machine only" in describe_exposure(host)
    assert "there is no password" in describe_exposure("0.0.0.0")


def test_hosts_become_addresses():
    for host in ("localhost", "127.0.0.1"):
        assert listeners.resolved(host) == "127.0.0.1"
    assert listeners.address_of("::1", 8501) == "[::1]:8501"
    assert listeners.address_of("127.0.0.1", 8501) == "127.0.0.1:8501"
    for host in ("nowhere.invalid", "a b", "x" * 300):
        with pytest.raises(UserError, match=f"--host={host} is not an address of this machine"):
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
    app = create_app(running.store)
    rest = listeners.RestServer(app, "::1", 0, running.store.limits)
    rest.start()
    with urllib.request.urlopen(f"http://[::1]:{rest.port}/healthz") as answer:
        assert answer.status == 200
    rest.stop()
    with (
        serving_grpc(running.store, "::1") as port,
        grpc.insecure_channel(f"[::1]:{port}") as opened,
    ):
        stub = prediction_service_pb2_grpc.PredictionServiceStub(opened)
        assert stub.Predict(predict_request(), 20).outputs["label"].string_val == [b"short"]
