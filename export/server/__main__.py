"""A local model server with TF Serving's REST and gRPC APIs, to try exports without docker.

    python -m export.server --model=topics=/exports/topics --rest_port=8501 --grpc_port=8500

It serves the highest version of each model and picks up new ones. For production use TensorFlow
Serving itself with the same folders: see export/serving/README.md.
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import logging
import os
import re
import signal
from collections.abc import Sequence
from types import FrameType

from data_pipeline.errors import UserError, needs_extra
from data_pipeline.files import atomic_files
from export.server.listeners import create_rest, start_grpc
from export.server.store import ModelStore

_GRACE_SECONDS = 2.0

FLAGS = flags.FLAGS


def parse_models(arguments: Sequence[str]) -> dict[str, str]:
    """["NAME=PATH", ...] -> {NAME: PATH}; raises UserError for anything else."""
    models: dict[str, str] = {}
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if not equals or not path or not re.fullmatch(r"[\w.-]+", name):
            raise UserError(
                f"--model={argument} should be NAME=PATH, the name made of letters, digits, '_', "
                "'-' and '.'."
            )
        if name in models:
            raise UserError(f"--model={argument}: the name {name!r} is given twice.")
        models[name] = path
    if not models:
        raise UserError(
            "No model to serve. Pass --model=NAME=PATH with a folder that run_export wrote."
        )
    return models


def check_packages() -> None:
    """Raises UserError where a package of the extra [serving] is missing."""
    with needs_extra("serving", "The server"):
        import waitress  # noqa: F401

        import export.server.grpc_service
        import export.server.rest  # noqa: F401


def define_flags() -> None:
    """Flags of this program."""
    flags.group("Server")
    flags.DEFINE_multi_string(
        "model", [], "NAME=PATH: serve the highest version under PATH as NAME; may be repeated."
    )
    flags.DEFINE_integer("rest_port", 8501, "Port for HTTP; 0 takes a free one.", upper_bound=65535)
    flags.DEFINE_integer("grpc_port", 8500, "Port for gRPC; 0 takes a free one.", upper_bound=65535)
    flags.DEFINE_string(
        "host", "127.0.0.1", "Address to listen on; 0.0.0.0 listens to the whole network."
    )
    flags.DEFINE_float(
        "poll_seconds", 1.0, "Seconds between two looks for new versions.", 0.01, 86400
    )
    flags.DEFINE_string(
        "ready_file", None, "JSON file to write addresses to, once everything answers."
    )


def main() -> None:
    """Serves until a signal ends the process."""
    check_packages()  # Before models are loaded.
    logging.getLogger("waitress").setLevel(logging.ERROR)
    signal.signal(signal.SIGTERM, _exit)
    signal.signal(signal.SIGINT, _exit)
    models = parse_models(FLAGS.model)
    store = ModelStore(models, FLAGS.poll_seconds)
    rest, rest_port = create_rest(store, FLAGS.host, FLAGS.rest_port)
    rpc, grpc_port = start_grpc(store, FLAGS.host, FLAGS.grpc_port)
    store.start()
    try:
        print(
            f"serving {', '.join(store.names())} at http://{FLAGS.host}:{rest_port}/v1/models/ and "
            f"grpc://{FLAGS.host}:{grpc_port}",
            flush=True,
        )
        if FLAGS.ready_file:
            ready = {
                "rest": f"http://{FLAGS.host}:{rest_port}",
                "grpc": f"{FLAGS.host}:{grpc_port}",
                "pid": os.getpid(),
                "models": store.names(),
            }
            atomic_files.write_json(FLAGS.ready_file, ready)
        rest.run()  # Until a signal raises SystemExit here.
    finally:
        rest.close()
        rpc.stop(_GRACE_SECONDS).wait()
        store.stop()


def _exit(signum: int, frame: FrameType | None) -> None:
    """Ends the process as a signal asks, and only once."""
    for each in (signal.SIGINT, signal.SIGTERM):  # A second one would interrupt the ending.
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(0)


if __name__ == "__main__":
    define_flags()
    run_binary(main)
