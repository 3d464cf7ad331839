"""The HTTP server of REST, by waitress, and the addresses that servers listen on.

The server is bound to its port when it is made, and answers once it is started. Slow, idle and
hostile clients are left to waitress with the settings below: this is a server for development.
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

# Threads that answer requests. Those that compute wait for one another (`computing` of the
# store), so status, /healthz and metrics are answered until this many wait.
_THREADS = 32
_MAX_CONNECTIONS = 500  # Each may take a file or two, and a process often has 1,024.
_IDLE_SECONDS = 30  # A connection on which nothing happens for so long is closed.
_CLEANUP_SECONDS = 5  # Between two looks for such connections.
# A body over the limit is read up to this many times the limit before it is refused (what is
# larger, at once): a client that sends all before it reads would see its connection reset, not why.
_READ_BEFORE_REFUSED = 4
_ENDING = b'{"error": "The server is ending and takes no further requests."}\n'


class RestServer:
    """An HTTP server around an application, in threads of its own.

    Port 0 takes a free one, and the attribute `port` tells which. A UserError if it cannot listen
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
                asyncore_use_poll=True,  # select() ends at 1,024 files.
                log_socket_errors=False,  # They come from clients that leave.
                ident=None,
            )
        except OSError as error:
            raise UserError(
                f"--rest_port={port}: cannot listen on {address_of(host, port)} "
                f"({error.strerror}). 0 takes a free port."
            ) from None
        self.port = self._server.effective_port

    def start(self) -> None:
        """Begins to answer."""
        threading.Thread(target=self._server.run, name="rest", daemon=True).start()

    def stop(self) -> None:
        """Refuses further requests (503), waits for the answers of those that have begun, closes.

        waitress itself would give them five seconds.
        """
        with self._changed:
            self._is_ending = True
            self._changed.wait_for(lambda: not self._inside)
        # The application has answered, but waitress may still be sending, as long as a connection
        # has a request or bytes left. A client that does not read gets as long as an idle one.
        deadline = time.monotonic() + _IDLE_SECONDS
        while self._is_sending() and time.monotonic() < deadline:
            time.sleep(0.01)
        self._server.close()

    def _is_sending(self) -> bool:
        # A list, since waitress's own thread changes the dictionary meanwhile.
        channels = list(self._server.active_channels.values())
        return any(channel.requests or channel.total_outbufs_len for channel in channels)

    def _answer(self, environ: dict[str, Any], start_response: Callable) -> Iterable[bytes]:
        """The application, with its requests counted; arguments as of WSGI."""
        # One lock for the check and the count: a request that `stop` does not see is refused.
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
    """The address of a host, of several the first: "localhost" -> "127.0.0.1". A UserError if
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
    # IPv4 first: clients that are told "localhost" and know no IPv6 are more than the others.
    address = min(found, key=lambda each: each[0] != socket.AF_INET)[4]
    # Not address[0], which lacks the zone of addresses such as fe80::1%eth0.
    return socket.getnameinfo(address, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0]


def address_of(host: str, port: int) -> str:
    """Host and port as URLs have them: ("::1", 8501) -> "[::1]:8501"."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
