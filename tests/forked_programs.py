"""Programs as processes of their own, without the seconds that importing TensorFlow takes.

A server has imported TensorFlow and the project, computes nothing, and forks itself for each
program. `tests/conftest.py` starts it and makes `quick_python`, a command that is called as Python
is and asks the server. What it runs has its own memory, files, environment, signals and exit code,
but reads no environment variable on the import, and shares the seed of hashes with all others of
the server. Where a fresh start is the point, tests run `sys.executable`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import types
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENTRY_POINT = "from albert_tf.commands import main; main()"  # What pip makes `albert-tf` of.
PROGRAMS = (
    "albert_tf.convert",
    "albert_tf.run_finetuning",
    "albert_tf.run_pretraining",
    "data_pipeline.create_pretraining_data",
    "data_pipeline.inspect_records",
    "export.run_export",
)
# What they import when they need it, which takes most of a second.
LATE_IMPORTS = ("tensorflow_text", "matplotlib.figure", "matplotlib.backends.backend_agg")
_REQUEST_BYTES = 1 << 20
# Python calls its handlers before and after a wait, and a signal may come just before.
_LONGEST_WAIT = 0.2  # Seconds.


def ask(address: str, arguments: Sequence[str]) -> int:
    """Has the server run a program with this process's files, folder and environment, passes
    signals on to it, and waits.

    Returns:
      Its exit code; this process ends by the signal that ended the program.
    """
    passed_on = (signal.SIGINT, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)  # They wait until there is a program.
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(address)
        request = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
        socket.send_fds(server, [json.dumps(request).encode()], [0, 1, 2])
        pid = int(server.recv(16))

        def pass_on(number: int, frame: object) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

        for number in passed_on:
            signal.signal(number, pass_on)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, passed_on)
        while not select.select([server], [], [], _LONGEST_WAIT)[0]:
            pass
        code = os.waitstatus_to_exitcode(int(server.recv(16)))
    if code < 0:
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def serve(listener: socket.socket) -> list[str]:
    """Forks a process for each request, until stdin is closed. One whose client is gone is killed.

    Returns:
      In each of the forked processes: the arguments of its program.
    """
    asked: dict[socket.socket, int] = {}  # Connection -> process.
    ending: dict[int, socket.socket] = {}  # Readable when the process has ended -> connection.
    while True:
        ready, _, _ = select.select([0, listener, *asked, *ending], [], [])
        if 0 in ready:
            for pid in asked.values():
                os.kill(pid, signal.SIGKILL)
            os._exit(0)
        for one in ready:
            if one is listener:
                connection, _ = listener.accept()
                message, files, *_ = socket.recv_fds(connection, _REQUEST_BYTES, 3)
                if not message:  # The client was killed.
                    continue
                pid = os.fork()
                if not pid:
                    for inherited in (listener, connection, *asked):
                        inherited.close()
                    return enter(json.loads(message), files)
                for file in files:
                    os.close(file)
                _tell(connection, pid)
                asked[connection] = pid
                ending[os.pidfd_open(pid)] = connection
            elif one in ending:
                connection = ending.pop(one)
                os.close(one)
                status = os.waitpid(asked.pop(connection), 0)[1]
                _tell(connection, status)
                connection.close()
            elif one in asked:  # Clients send nothing more: this one is gone.
                os.kill(asked[one], signal.SIGKILL)


def _tell(client: socket.socket, number: int) -> None:
    with contextlib.suppress(ConnectionError):  # It is gone.
        client.send(str(number).encode())


def enter(request: dict, files: Sequence[int]) -> list[str]:
    """Makes a forked process what its client asked for; returns the arguments."""
    from data_pipeline.quiet import prepare_program  # Not in a client, which has a bare Python.

    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path.insert(0, request["folder"])
    prepare_program()
    return request["arguments"]


def run(option: str, program: str, *arguments: str) -> None:
    """Runs a program as `python -m module ...` or `python -c code ...` does."""
    sys.argv = [option, *arguments]
    if option == "-m":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        assert option == "-c", f"{option}: only -m and -c are known here"
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(program, main.__dict__)


def main(address: str, *arguments: str) -> None:
    if arguments:
        sys.exit(ask(address, arguments))
    sys.path[0] = str(ROOT)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # A job in the background ignores it.
    for name in (*PROGRAMS, *LATE_IMPORTS):
        importlib.import_module(name)
    for name in PROGRAMS:
        del sys.modules[name]  # It will be run as __main__.
    gc.freeze()  # Otherwise each process that ends looks through all that was imported: a second.
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)
        program = serve(listener)
    sys.executable = f"{address}.python"  # What the program starts itself is forked as well.
    run(*program)


if __name__ == "__main__":
    main(*sys.argv[1:])
