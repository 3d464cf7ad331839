"""The two listening servers: REST by waitress, gRPC by grpcio."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import resource
import socket

import grpc
import waitress

from data_pipeline.errors import UserError
from export.server.connections import Connection
from export.server.grpc_service import add_services
from export.server.monitoring import Monitor
from export.server.rest import create_app
from export.server.store import ModelStore
from export.server.turns import MOST_REQUESTS

_THREADS = MOST_REQUESTS + 32  # Requests that wait for a turn hold one each.
_MAX_CONNECTIONS, _OPEN_FILES = 4096, 1 << 16
_IDLE_SECONDS = 30  # A connection that sends nothing for so long is closed.
# Calls of gRPC at once, of all connections and of one. Each has a thread, also while its message is
# awaited.
_CALLS, _CALLS_OF_ONE = 256, 64
# A connection of gRPC is renewed after so long; its calls have so much longer to end. Otherwise
# calls whose message never comes would be open for ever.
_CONNECTION_SECONDS, _LAST_CALLS_SECONDS = 60, 120
_HANDSHAKE_SECONDS = 10  # For a connection of gRPC to become one.
# Bytes of answers that a connection may have waiting, in files from a megabyte on.
_UNREAD_BYTES = 1 << 28


def create_rest(
    store: ModelStore,
    host: str,
    port: int,
    monitor: Monitor | None = None,
    playground: bool = False,
) -> tuple[waitress.server.BaseWSGIServer, int]:
    """An HTTP server that is bound but does not run yet.

    Requests are read in one thread, without waiting, and answered by others once they are whole:
    slow clients hold up nobody.

    Args:
      store: the models, with the limits of a request.
      host, port: address; port 0 takes a free one.
      monitor: what counts the requests.
      playground: whether to show the page at /playground.

    Returns:
      The server and its port.

    Raises:
      UserError: the address cannot be listened on.
    """
    seen = monitor or Monitor(store.names())
    try:
        server = waitress.create_server(
            create_app(store, seen, playground),
            host=host,
            port=port,
            threads=_THREADS,
            ipv6=":" in host,
            connection_limit=_connection_limit(),
            channel_timeout=_IDLE_SECONDS,
            cleanup_interval=5,
            backlog=1024,
            max_request_body_size=store.limits.max_request_bytes,
            outbuf_high_watermark=_UNREAD_BYTES,
            asyncore_use_poll=True,  # select() ends at 1024 files.
            ident=None,
        )
    except OSError as error:
        raise UserError(
            f"--rest_port={port}: cannot listen on {address_of(host, port)} ({error.strerror}). 0 "
            "takes a free port."
        ) from None
    server.channel_class = functools.partial(Connection, monitor=seen)
    return server, server.effective_port


def resolved(host: str) -> str:
    """The address of a host, of several the first: "localhost" -> "127.0.0.1".

    Raises:
      UserError: there is none.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"--host={host} is no address of this machine ({reason}). 127.0.0.1 is for programs on "
            "it, 0.0.0.0 for the whole network."
        ) from None
    # IPv4 first: clients that are told "localhost" and know no IPv6 are more than the others.
    address = min(found, key=lambda each: each[0] != socket.AF_INET)[4]
    # Not address[0], which lacks the zone of addresses such as fe80::1%eth0.
    return socket.getnameinfo(address, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0]


def address_of(host: str, port: int) -> str:
    """Host and port as URLs have them: ("::1", 8501) -> "[::1]:8501"."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _connection_limit() -> int:
    """Connections of REST: at most half of the files that the process may have open, of which it
    takes all that it can have. Models and gRPC, whose connections nobody counts, have the others.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if resource.RLIM_INFINITY != soft < wanted:
        # Macs have a lower limit than they say.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _OPEN_FILES if soft == resource.RLIM_INFINITY else soft
    return max(100, min(_MAX_CONNECTIONS, files // 2))


def start_grpc(
    store: ModelStore, host: str, port: int, monitor: Monitor | None = None
) -> tuple[grpc.Server, int]:
    """A running gRPC server.

    Args:
      store: the models, with the limits of a request.
      host, port: address; port 0 takes a free one.
      monitor: what counts the requests.

    Returns:
      The server and its port.

    Raises:
      UserError: the address cannot be listened on.
    """
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(_CALLS, "grpc"),
        # With so_reuseport two servers could share a port, and each would get half of the requests.
        options=[
            ("grpc.max_receive_message_length", store.limits.max_request_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
            ("grpc.max_concurrent_streams", _CALLS_OF_ONE),
            ("grpc.server_handshake_timeout_ms", 1000 * _HANDSHAKE_SECONDS),
            ("grpc.max_connection_age_ms", 1000 * _CONNECTION_SECONDS),
            ("grpc.max_connection_age_grace_ms", 1000 * _LAST_CALLS_SECONDS),
        ],
        maximum_concurrent_rpcs=_CALLS,
    )
    add_services(server, store, monitor or Monitor(store.names()))
    try:
        bound = server.add_insecure_port(address_of(host, port))
    except RuntimeError:
        bound = 0
    if not bound:
        raise UserError(
            f"--grpc_port={port}: cannot listen on {address_of(host, port)}. Is it in use? 0 takes "
            "a free port."
        )
    server.start()
    return server, bound
