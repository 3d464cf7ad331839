"""The two listening servers: REST by waitress, gRPC by grpcio."""

from __future__ import annotations

import concurrent.futures
from typing import TYPE_CHECKING

from data_pipeline.errors import UserError
from export.server.store import ModelStore

if TYPE_CHECKING:
    import grpc
    import waitress

_THREADS = 8


def start_grpc(store: ModelStore, host: str, port: int) -> tuple[grpc.Server, int]:
    """A running gRPC server and its port."""
    import grpc

    from export.server.grpc_service import add_services

    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(_THREADS, "grpc"),
        # With so_reuseport two servers could share a port, and each would get half of the requests.
        options=[
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ],
    )
    add_services(server, store)
    try:
        bound = server.add_insecure_port(f"{host}:{port}")
    except RuntimeError:
        bound = 0
    if not bound:
        raise UserError(
            f"--grpc_port={port}: cannot listen on {host}:{port}. Is it in use? 0 takes a free "
            "port."
        )
    server.start()
    return server, bound


def create_rest(
    store: ModelStore, host: str, port: int
) -> tuple[waitress.server.BaseWSGIServer, int]:
    """An HTTP server that is bound but does not run yet, and its port."""
    import waitress

    from export.server.rest import create_app

    try:
        server = waitress.create_server(
            create_app(store), host=host, port=port, threads=_THREADS, ipv6=":" in host
        )
    except OSError as error:
        raise UserError(
            f"--rest_port={port}: cannot listen on {host}:{port} ({error.strerror}). 0 takes a "
            "free port."
        ) from None
    return server, server.effective_port
