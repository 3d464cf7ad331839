"""Refusals arrive at clients that send everything before they read."""

import functools
import http.client
import json
import os
import re
import socket
import threading
import time

import pytest
import waitress

from export.server import connections
from export.server.monitoring import Monitor
from tests.export.server.listeners_test import call, raw

PATH = "/v1/models/tiny:predict"
TOO_LARGE = "Request Entity Too Large: exceeds max_body of 200000."


def whole(size):
    return b"a" * size


def chunked(size):
    """The same in chunks, whose sum nobody tells beforehand."""
    return (b"a" * 100_000 for _ in range(size // 100_000))


def refused(running):
    """Number of requests for no model that were refused, as the server counts them."""
    counted = r'_count\{model_name="",status="INVALID_ARGUMENT"\} (\d+)'
    return sum(map(int, re.findall(counted, running.monitor.text())))


@pytest.mark.parametrize("body", [whole, chunked])
def test_a_body_over_the_limit_is_sent_and_refused(running, body):
    """More than sockets buffer, so that a server that stops reading breaks the pipe."""
    before = refused(running)
    connection = http.client.HTTPConnection(running.rest.removeprefix("http://"), timeout=60)
    connection.request("POST", PATH, body(60_000_000), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 413 and answer.headers["Connection"] == "close"
    assert json.loads(answer.read()) == {"error": TOO_LARGE}
    assert refused(running) == before + 1
    assert call(running, PATH, {"instances": ["abc"]})[0] == 200


def test_a_head_over_the_limit_is_refused_too(running):
    connection = http.client.HTTPConnection(running.rest.removeprefix("http://"), timeout=60)
    connection.request("POST", PATH, whole(5_000_000), {"X-Long": "a" * 300_000})
    answer = connection.getresponse()
    assert answer.status == 431 and "max_header" in json.loads(answer.read())["error"]


def test_no_more_than_the_bound_is_thrown_away(running, monkeypatch):
    """Who goes on and on is cut off; others are answered meanwhile."""
    monkeypatch.setattr(connections, "MAX_DISCARDED_BYTES", 1 << 20)
    with raw(running) as client:
        client.sendall(f"POST {PATH} HTTP/1.1\r\nContent-Length: {1 << 40}\r\n\r\n".encode())
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 413 ")
        deadline = time.monotonic() + 60
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            while time.monotonic() < deadline:
                client.sendall(b"a" * (1 << 20))
    assert call(running, PATH, {"instances": ["abc"]})[0] == 200


def test_a_request_that_never_ends_is_given_up(running, monkeypatch):
    """Though its client goes on sending, a byte at a time."""
    deadline, before = time.monotonic() + 60, refused(running)
    with monkeypatch.context() as patched, raw(running) as client:
        patched.setattr(connections, "REQUEST_SECONDS", 0.3)
        client.sendall(f"POST {PATH} HTTP/1.1\r\nContent-Length: 1000\r\n\r\n".encode())
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            while time.monotonic() < deadline:
                client.sendall(b"a")
                time.sleep(0.05)
    assert refused(running) == before + 1
    assert call(running, PATH, {"instances": ["abc"]})[0] == 200


def test_a_client_that_leaves_is_forgotten(running):
    """Its connection is closed then, not when the time is up."""
    call(running, PATH, {"instances": ["abc"]})
    before = open_files()
    with raw(running) as client:
        client.sendall(f"POST {PATH} HTTP/1.1\r\nContent-Length: {1 << 30}\r\n\r\n".encode())
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 413 ")
        assert open_files() > before
    deadline = time.monotonic() + 10
    while open_files() > before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def open_files():
    """Files and sockets of this process, in which the server runs."""
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def lots(request):
    """The port of a server that answers /lots with 8 MB in one of two threads, and / with "ok"; it
    waits so many seconds for a client.
    """

    def app(environ, start_response):
        body = b"\xff" * 8_000_000 if environ["PATH_INFO"] == "/lots" else b"ok"
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]

    server = waitress.create_server(
        app,
        host="127.0.0.1",
        port=0,
        threads=2,
        channel_timeout=request.param,
        outbuf_high_watermark=1 << 20,
        asyncore_use_poll=True,
    )
    server.channel_class = functools.partial(connections.Connection, monitor=Monitor([]))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield server.effective_port
    server.close()
    thread.join(10)


@pytest.mark.parametrize("lots", [1], indirect=True)
def test_who_asks_and_does_not_read_is_cut_off(lots):
    """Both threads wait for the clients to read, one second; then others are answered again."""
    request = b"GET /lots HTTP/1.1\r\nHost: a\r\n\r\n"
    clients = [socket.create_connection(("127.0.0.1", lots)) for _ in range(2)]
    try:
        for client in clients:
            client.sendall(request * 3)
        time.sleep(0.5)
        connection = http.client.HTTPConnection("127.0.0.1", lots, timeout=30)
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"ok"
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize("lots", [60], indirect=True)
def test_who_reads_gets_everything(lots, monkeypatch):
    """However little that is: the rate is asked of those who let the server wait all its time."""
    monkeypatch.setattr(connections, "LEAST_BYTES_A_SECOND", 1 << 40)
    request = b"GET /lots HTTP/1.1\r\nHost: a\r\n\r\n"
    with socket.create_connection(("127.0.0.1", lots)) as client:
        client.sendall(request * 3)
        time.sleep(0.5)  # The server waits by now.
        received, count = client.makefile("rb"), 0
        while count < 24_000_000 and (data := received.read1(1 << 20)):
            count += data.count(b"\xff")  # No header has it.
        assert count == 24_000_000
