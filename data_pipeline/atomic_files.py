"""Small files written so that a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import tensorflow as tf

from data_pipeline.errors import UserError

_BLOCK_BYTES = 1 << 20


def write_bytes(path: str, content: bytes) -> None:
    """Writes to a temporary name beside `path`, then renames; works on gs:// too."""
    partial = f"{path}.partial"
    try:
        with tf.io.gfile.GFile(partial, "wb") as file:
            file.write(content)
        tf.io.gfile.rename(partial, path, overwrite=True)
    except BaseException:
        if tf.io.gfile.exists(partial):
            tf.io.gfile.remove(partial)
        raise


def write_json(path: str, value: Any, indent: int | None = 2) -> None:
    """Writes `value` as UTF-8 JSON, atomically."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    write_bytes(path, (text + "\n").encode("utf-8"))


def read_json(path: str) -> Any:
    """Reads JSON; raises UserError naming the file when it is not JSON."""
    with tf.io.gfile.GFile(path, "rb") as file:
        content = file.read()
    try:
        return json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise UserError(f"{path} should hold JSON but cannot be read as such: {error}.") from error


def sha256(path: str) -> str:
    """Hexadecimal SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with tf.io.gfile.GFile(path, "rb") as file:
        while True:
            block = file.read(_BLOCK_BYTES)
            if not block:
                return digest.hexdigest()
            digest.update(block)
