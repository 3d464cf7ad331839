"""The two listening servers: REST by waitress, gRPC by grpcio."""

from __future__ import annotations

import concurrent.futures
import functools
import resource

import grpc
import waitress

from data_pipeline.errors import UserError
from export.server.connections import Connection
from export.server.grpc_service import add_services
from export.server.monitoring import Monitor
from export.server.rest import create_app
from export.server.store import ModelStore

_THREADS = 64  # Many more than graphs run at once: those that wait for a turn hold one each.
_MAX_CONNECTIONS = 4096
_IDLE_SECONDS = 30  # A connection that sends nothing for so long is closed.
_CALLS = 64  # Of gRPC at once; each has a thread, also while its message is awaited.
# A connection of gRPC is renewed after so long; its calls have so much longer to end. Otherwise
# calls whose message never comes would be open for ever.
_CONNECTION_SECONDS, _LAST_CALLS_SECONDS = 60, 120
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


def address_of(host: str, port: int) -> str:
    """Host and port as URLs have them: ("::1", 8501) -> "[::1]:8501"."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _connection_limit() -> int:
    """As many connections as the process may have open files, with some left for models."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_CONNECTIONS + 256
    if soft < wanted:
        soft = min(wanted, hard) if hard != resource.RLIM_INFINITY else wanted
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(100, min(_MAX_CONNECTIONS, soft - 256))


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
