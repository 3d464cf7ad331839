"""A local model server with TF Serving's REST and gRPC APIs, to try exports without docker.

    python -m export.server --model=topics=/exports/topics --rest_port=8501 --grpc_port=8500

It serves the highest version of each model and picks up new ones; with --playground it also shows
them on a web page. For production, use TensorFlow Serving itself with the same folders: see
export/serving/README.md.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import threading
import time
from types import FrameType

from data_pipeline.command_line import flags, run_binary, settings
from data_pipeline.errors import needs_extra
from data_pipeline.files import atomic_files
from export.server.models import ModelStore, parse_models, read_config_file
from export.server.refusals import Limits

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Models")
    flags.DEFINE_multi_string(
        "model", [], "NAME=PATH: serve the highest version under PATH as NAME."
    )
    flags.DEFINE_string(
        "model_config_file",
        None,
        "Text file in TensorFlow Serving's format (model_config_list) with names, folders, version "
        "policies and version labels of models to serve.",
    )
    flags.DEFINE_float(
        "poll_seconds", 1.0, "Seconds between checks for new versions.", 0.01, 86400, expert=True
    )
    flags.group("Server")
    flags.DEFINE_integer("rest_port", 8501, "Port for REST; 0 takes a free one.", upper_bound=65535)
    flags.DEFINE_integer("grpc_port", 8500, "Port for gRPC; 0 takes a free one.", upper_bound=65535)
    flags.DEFINE_string(
        "host", "127.0.0.1", "Address to listen on; 0.0.0.0 listens to the whole network."
    )
    flags.DEFINE_bool("playground", False, "Serve a page for trying the models at /playground.")
    flags.DEFINE_bool("log_requests", False, "Write a line of JSON for each request to stderr.")
    flags.DEFINE_string(
        "ready_file", None, "JSON file to write the addresses to, once the server is ready."
    )
    settings.define(Limits, "Limits of a request")


def main() -> None:
    """Serves until a signal ends the process."""
    with needs_extra("serving", "The server"):
        from export.server.grpc_service import create_server
        from export.server.listeners import RestServer, address_of, resolved
        from export.server.monitoring import Monitor
        from export.server.playground import add_playground
        from export.server.rest import create_app

    host = resolved(FLAGS.host)
    logging.getLogger("waitress").setLevel(logging.ERROR)  # It warns about each queued request.
    models = parse_models(FLAGS.model)
    if FLAGS.model_config_file:
        models += read_config_file(FLAGS.model_config_file)
    limits = settings.read(Limits)
    store = ModelStore(models, FLAGS.poll_seconds, limits)
    monitor = Monitor(store.names(), FLAGS.log_requests)
    app = create_app(store, monitor)
    if FLAGS.playground:
        add_playground(app, store)
    # Bind the ports before loading models, which may take minutes, to detect a port in use early.
    rest = RestServer(app, host, FLAGS.rest_port, limits)
    rpc, grpc_port = create_server(host, FLAGS.grpc_port, store, monitor)
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    try:
        store.load()
        rest.start()
        rpc.start()
        store.start()
        url, rpc_address = f"http://{address_of(host, rest.port)}", address_of(host, grpc_port)
        print(
            f"serving {', '.join(store.names())} at {url}/v1/models/ and "
            f"grpc://{rpc_address}{describe_exposure(host)}"
            + (f"; playground: {url}/playground" if FLAGS.playground else ""),
            flush=True,
        )
        if FLAGS.ready_file:
            ready = {"rest": url, "grpc": rpc_address, "pid": os.getpid(), "models": store.names()}
            atomic_files.write_json(FLAGS.ready_file, ready)
        while True:  # Until `_end` raises SystemExit here.
            time.sleep(1)  # Not signal.pause(), which misses a signal that arrives just before it.
    finally:
        # Running requests are completed, however long they take; new ones are refused. gRPC first,
        # since its `stop` returns immediately, while that of REST waits.
        ended = rpc.stop(threading.TIMEOUT_MAX)
        rest.stop()
        ended.wait()
        store.stop()


def describe_exposure(address: str) -> str:
    """A clause that says who can connect to an address."""
    if ipaddress.ip_address(address).is_loopback:
        return ", for programs on this machine only (--host)"
    return ", for everybody who reaches this machine: there is no password"


def _end(signum: int, frame: FrameType | None) -> None:
    """Starts the shutdown; a second signal ends the process without waiting for requests."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)
    raise SystemExit(0)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
