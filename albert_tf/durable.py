"""Files that are whole after a power cut: safe on the disk before anything relies on them.

Files of gs:// and the like appear whole when they are closed; for them nothing is done.
"""

from __future__ import annotations

import errno
import json
import os
from typing import Any

import tensorflow as tf

# Errors of file systems that cannot sync a folder.
_NOT_SUPPORTED = (errno.EINVAL, errno.ENOTSUP)


def is_local(path: str) -> bool:
    """Whether a path is on a file system of this machine, not gs:// or the like."""
    return "://" not in path


def sync(path: str) -> None:
    """Returns when a local file's content, or the names in a local folder, are safe on the disk."""
    if not is_local(path):
        return
    handle = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise
    finally:
        os.close(handle)


def sync_tree(folder: str) -> None:
    """Returns when a local folder with all that is in it is safe on the disk."""
    if not is_local(folder):
        return
    for parent, _, names in os.walk(folder):
        for name in names:
            sync(os.path.join(parent, name))
        sync(parent)


def write_text(path: str, text: str) -> None:
    """Writes a file under another name first, so that `path` always has the old or the new text."""
    partial = f"{path}.partial"
    with tf.io.gfile.GFile(partial, "w") as file:
        file.write(text)
    sync(partial)
    tf.io.gfile.rename(partial, path, overwrite=True)
    sync(os.path.dirname(path))


def write_json(path: str, values: Any, sort_keys: bool = False) -> None:
    """Writes JSON as `write_text` does."""
    write_text(path, json.dumps(values, indent=2, sort_keys=sort_keys) + "\n")
