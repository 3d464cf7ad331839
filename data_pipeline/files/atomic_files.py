"""Files written so that a reader, also one after a power cut, sees the old content or the new one.

All packages write their files by these functions; whole folders: atomic_folders.py.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from typing import IO, Any

from data_pipeline.errors import UserError
from data_pipeline.files import storage

_BLOCK_BYTES = 1 << 20


@contextlib.contextmanager
def writing(path: str) -> Iterator[IO[bytes]]:
    """A context with a file to write, which gets the name `path` when it ends without an error."""
    with _becoming(path) as partial, storage.open_file(partial, "wb") as file:
        yield file


@contextlib.contextmanager
def _becoming(path: str) -> Iterator[str]:
    """A context with the path of a file to write, which then gets the name `path`."""
    # Each call has a name of its own: on a cluster tasks may run twice, and workers in containers
    # have equal process numbers. The call that ends last replaces what the others wrote.
    partial = f"{path}.{uuid.uuid4().hex}.partial"
    try:
        yield partial
        # The content first: a file system may store a rename before what was written earlier.
        sync(partial)
        storage.rename(partial, path)
        sync(os.path.dirname(path))
    except BaseException as error:
        storage.remove(partial)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = path  # A full disk names no file.
        raise


def write_bytes(path: str, content: bytes) -> None:
    """Writes a file."""
    with writing(path) as file:
        file.write(content)


def write_text(path: str, text: str) -> None:
    """Writes text as UTF-8, its line ends as they are."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: str, value: Any, indent: int | None = 2, sort_keys: bool = False) -> None:
    """Writes JSON; infinite numbers and nan, which JSON does not have, are a ValueError."""
    text = json.dumps(
        value, indent=indent, sort_keys=sort_keys, ensure_ascii=False, allow_nan=False
    )
    write_text(path, text + "\n")


def copy(source: str, path: str) -> None:
    """Writes a copy of another file."""
    with _becoming(path) as partial:
        storage.copy(source, partial)


def read_json(path: str) -> Any:
    """Reads JSON; raises UserError naming the file when it is not JSON."""
    content = storage.read_bytes(path)
    try:
        return json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise UserError(f"{path} should hold JSON but cannot be read as such: {error}.") from error


def file_sha256(path: str) -> str:
    """Hexadecimal SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with storage.open_file(path, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def sync(path: str) -> None:
    """Returns when a local file's content, or the names in a local folder, are safe on the disk."""
    if storage.is_remote(path):  # Files of gs:// and the like appear, whole, when they are closed.
        return
    handle = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # Some file systems cannot.
            raise
    finally:
        os.close(handle)


def sync_tree(folder: str) -> None:
    """Returns when a local folder with all that is in it is safe on the disk."""
    if storage.is_remote(folder):
        return
    for parent, _, names in os.walk(folder):
        for name in names:
            sync(os.path.join(parent, name))
        sync(parent)
