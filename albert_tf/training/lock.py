"""The lock of a run's folder: one process trains there at a time."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import socket
from collections.abc import Iterator
from typing import TextIO

from albert_tf import durable
from albert_tf.errors import UserError

LOCK_FILE = "run.lock"


@contextlib.contextmanager
def locked(folder: str) -> Iterator[None]:
    """Locks a folder while the context lasts or until the process ends, however it ends.

    The lock is the operating system's (flock) on the file run.lock, which stays there and means
    nothing by itself. gs:// and the like, and some network file systems, have no locks.

    Raises:
      UserError: another process holds the lock; the message says which.
    """
    if not durable.is_local(folder):
        yield
        return
    with open(os.path.join(folder, LOCK_FILE), "a+") as file:
        _lock(file, folder)
        yield


def _lock(file: TextIO, folder: str) -> None:
    """Locks the file and writes into it who holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "another process"
        raise UserError(
            f"--output_dir={folder} is in use: {holder}, trains there. Wait for it to end, or name "
            "another folder."
        ) from None
    except OSError as error:
        print(
            f"--output_dir={folder} cannot be locked ({error.strerror}). Make sure that no other "
            "process trains there.",
            flush=True,
        )
        return
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}, started {now}\n")
    file.flush()
