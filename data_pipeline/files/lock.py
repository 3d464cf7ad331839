"""A lock that lets one process at a time write to a folder, and tells others which one holds it."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import functools
import inspect
import os
import socket
from collections.abc import Callable, Iterator
from typing import IO, ParamSpec, TypeVar

from data_pipeline.errors import UserError
from data_pipeline.files import storage

# The operating system releases the lock (flock) on this file however the process ends, so a file
# left by a killed process is harmless. gs:// and some network file systems have no locks.
LOCK_FILE = "writing.lock"
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@contextlib.contextmanager
def locked(folder: str, name: str = LOCK_FILE, flag: str = "--output_dir") -> Iterator[None]:
    """Locks a folder while the context lasts. Creates the folder, and removes it if it stays empty.
    `name` is the name of the lock file; `flag` is the flag for the folder, used in messages.

    A lock that another process holds is a UserError that names the process. A file in the folder's
    place is a UserError, too.
    """
    if storage.is_remote(folder):
        yield
        return
    is_new, path = not os.path.exists(folder), os.path.join(folder, name)
    with _opened(folder, path, flag) as file:
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}, started {now}\n")
        file.flush()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # The folder may have been removed.
                os.remove(path)
            if is_new:
                with contextlib.suppress(OSError):  # The folder may not be empty.
                    os.rmdir(folder)


def locks(
    argument: str,
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """A decorator for functions that write to a folder. It locks the folder, which is the function
    argument with the name `argument`, while they run.
    """

    def decorate(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapped(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            folder = signature.bind(*args, **kwargs).arguments[argument]
            with locked(os.fspath(folder), flag=f"--{argument}"):
                return function(*args, **kwargs)

        return wrapped

    return decorate


def _opened(folder: str, path: str, flag: str) -> IO[str]:
    """The lock's file, opened and locked."""
    while True:
        _make(folder, flag)
        with contextlib.ExitStack() as stack, contextlib.suppress(FileNotFoundError):
            # Not "w", which would erase the holder's name before the file is locked.
            file = stack.enter_context(open(path, "a+"))
            _lock(file, folder, flag)
            # If they differ, the previous holder has removed the file that is locked here.
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                stack.pop_all()
                return file


def _make(folder: str, flag: str) -> None:
    """Makes a folder and those above it, unless they exist."""
    try:
        os.makedirs(folder or ".", exist_ok=True)
    except (FileExistsError, FileNotFoundError, NotADirectoryError):
        file = folder
        while not os.path.lexists(file):
            file = os.path.dirname(file)
        if os.path.isdir(file):
            raise  # The system's message is clearer.
        is_above = "" if file == folder else f": {file}"
        what = "a file" if os.path.exists(file) else "a broken link"
        raise UserError(f"{flag}={folder}{is_above} is {what}. Name a folder.") from None


def _lock(file: IO[str], folder: str, flag: str) -> None:
    """Locks the file; raises UserError with the holder's name if it is locked already."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "another process"
        raise UserError(
            f"{flag}={folder} is in use by {holder}. Wait for it to end, or name another folder."
        ) from None
    except OSError as error:
        print(
            f"{flag}={folder} cannot be locked ({error.strerror}). Make sure that no other "
            "process writes there.",
            flush=True,
        )
