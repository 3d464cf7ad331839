"""The HTTP server of REST, by waitress, and the addresses that servers listen on.

The constructor binds the port; `start` begins to answer. waitress handles slow, idle and hostile
clients with the settings below: this is a server for development.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import waitress
from flask import Flask

from data_pipeline.errors import UserError
from export.server.refusals import Limits

# Threads that answer requests. Those that compute wait for each other (`computing` of the store),
# so status, /healthz and metrics are answered as long as fewer than this many are waiting.
_THREADS = 32
_MAX_CONNECTIONS = 500  # Each may use one or two file descriptors; the limit is often 1,024.
_IDLE_SECONDS = 30  # An idle connection is closed after this time.
_CLEANUP_SECONDS = 5  # Interval between checks for idle connections.
# A body over the limit is read up to this many times the limit before it is refused; larger ones
# are refused immediately. A client that sends everything first would only see a connection reset.
_READ_BEFORE_REFUSED = 4
_ENDING = b'{"error": "The server is ending and takes no further requests."}\n'


class RestServer:
    """An HTTP server for a WSGI application, running in its own threads.

    Port 0 takes a free one, which the attribute `port` holds. Raises UserError if it cannot listen
    there.
    """

    def __init__(self, app: Flask, host: str, port: int, limits: Limits) -> None:
        self._app = app
        self._inside, self._is_ending = 0, False
        self._changed = threading.Condition()  # Its lock guards both.
        try:
            self._server = waitress.create_server(
                self._answer,
                host=host,
                port=port,
                ipv6=":" in host,
                threads=_THREADS,
                connection_limit=_MAX_CONNECTIONS,
                channel_timeout=_IDLE_SECONDS,
                cleanup_interval=_CLEANUP_SECONDS,
                max_request_body_size=_READ_BEFORE_REFUSED * limits.max_request_bytes,
                asyncore_use_poll=True,  # select() is limited to 1,024 files.
                log_socket_errors=False,  # Caused by clients that disconnect.
                ident=None,
            )
        except OSError as error:
            raise UserError(
                f"--rest_port={port}: cannot listen on {address_of(host, port)} "
                f"({error.strerror}). 0 takes a free port."
            ) from None
        self.port = self._server.effective_port

    def start(self) -> None:
        """Starts to answer requests."""
        threading.Thread(target=self._server.run, name="rest", daemon=True).start()

    def stop(self) -> None:
        """Refuses new requests (503), waits until running ones are answered, and closes.

        waitress itself would wait only five seconds.
        """
        with self._changed:
            self._is_ending = True
            self._changed.wait_for(lambda: not self._inside)
        # The application has answered, but waitress may still be sending: it is while a connection
        # has a request or unsent bytes. A client that does not read gets the time of an idle one.
        deadline = time.monotonic() + _IDLE_SECONDS
        while self._is_sending() and time.monotonic() < deadline:
            time.sleep(0.01)
        self._server.close()

    def _is_sending(self) -> bool:
        # A copy, since waitress's thread may change the dictionary during the loop.
        channels = list(self._server.active_channels.values())
        return any(channel.requests or channel.total_outbufs_len for channel in channels)

    def _answer(self, environ: dict[str, Any], start_response: Callable) -> Iterable[bytes]:
        """Calls the application and counts running requests; arguments as in WSGI."""
        # Check and count under one lock, so that `stop` waits for every accepted request.
        with self._changed:
            if self._is_ending:
                start_response("503 Service Unavailable", [("Content-Type", "application/json")])
                return [_ENDING]
            self._inside += 1
        try:
            return self._app(environ, start_response)
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()


def resolved(host: str) -> str:
    """The first address of a host, preferring IPv4: "localhost" -> "127.0.0.1". Raises UserError if
    it has none.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"--host={host} is not an address of this machine ({reason}). 127.0.0.1 is for "
            "programs on it, 0.0.0.0 for the whole network."
        ) from None
    # IPv4 first: of the clients that connect to "localhost", more lack IPv6 than IPv4.
    address = min(found, key=lambda each: each[0] != socket.AF_INET)[4]
    # Not address[0], which lacks the zone of addresses such as fe80::1%eth0.
    return socket.getnameinfo(address, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0]


def address_of(host: str, port: int) -> str:
    """Host and port in URL form: ("::1", 8501) -> "[::1]:8501"."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
