"""Writes files atomically: a reader sees the old or the new content, even after a power failure.

All packages write their files with these functions; for whole folders see atomic_folders.py.
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
    """A context with a file to write; it is renamed to `path` if the context ends without error."""
    with _becoming(path) as partial, storage.open_file(partial, "wb") as file:
        yield file


@contextlib.contextmanager
def _becoming(path: str) -> Iterator[str]:
    """A context with the path of a temporary file to write, which is then renamed to `path`."""
    # Each call uses a unique name: on a cluster, tasks may run twice, and workers in containers may
    # have equal process numbers. The call that ends last replaces what the others wrote.
    partial = f"{path}.{uuid.uuid4().hex}.partial"
    try:
        yield partial
        # Sync the content first: a file system may store the rename before earlier writes.
        sync(partial)
        storage.rename(partial, path)
        sync(os.path.dirname(path))
    except BaseException as error:
        storage.remove(partial)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = path  # The error of a full disk names no file.
        raise


def write_bytes(path: str, content: bytes) -> None:
    """Writes a file."""
    with writing(path) as file:
        file.write(content)


def write_text(path: str, text: str) -> None:
    """Writes text as UTF-8, without changing its line ends."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: str, value: Any, indent: int | None = 2, sort_keys: bool = False) -> None:
    """Writes JSON; infinite numbers and NaN, which JSON does not support, are a ValueError."""
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
    """Blocks until the content of a local file, or the names in a local folder, are on the disk."""
    if storage.is_remote(path):  # Files on gs:// and similar appear, complete, when closed.
        return
    handle = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # Not all file systems support it.
            raise
    finally:
        os.close(handle)


def sync_tree(folder: str) -> None:
    """Blocks until a local folder with all its content is on the disk."""
    if storage.is_remote(folder):
        return
    for parent, _, names in os.walk(folder):
        for name in names:
            sync(os.path.join(parent, name))
        sync(parent)
