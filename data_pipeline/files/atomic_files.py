"""Files written so that a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import contextlib
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
    """A context with a file to write, which gets the name `path` when it ends without an error.

    On a disk its content is safe before it gets the name, so that a power failure leaves no file of
    this name with less in it. Any number of processes and machines may write the same path at once:
    each has a file of its own, and the one that ends last replaces the others.
    """
    partial = f"{path}.{uuid.uuid4().hex}.partial"
    try:
        with storage.open_file(partial, "wb") as file:
            yield file
            file.flush()
            if not storage.is_remote(path):
                os.fsync(file.fileno())
        storage.rename(partial, path)
    except BaseException as error:
        storage.remove(partial)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = path  # A full disk names no file.
        raise


def write_bytes(path: str, content: bytes) -> None:
    """Writes `content` atomically; works on gs:// too."""
    with writing(path) as file:
        file.write(content)


def write_json(path: str, value: Any, indent: int | None = 2) -> None:
    """Writes `value` as UTF-8 JSON, atomically."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    write_bytes(path, (text + "\n").encode("utf-8"))


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
        while True:
            block = file.read(_BLOCK_BYTES)
            if not block:
                return digest.hexdigest()
            digest.update(block)
