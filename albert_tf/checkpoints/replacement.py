"""Replacement of a folder by another one, so that a process that is killed at any moment leaves the
old folder or the new one, and never less.

Where the system can exchange two folders in one step (Linux, on its own file systems), the folder
is there at every moment. Elsewhere it is missing between two renames, and `existing` finds the old
one.

model       the folder
model.new   its successor while it is written; after an exchange, its predecessor
model.old   between two renames, its predecessor
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

import tensorflow as tf

from albert_tf import durable

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # From fcntl.h and stdio.h.


@contextlib.contextmanager
def replacing(directory: str) -> Iterator[str]:
    """A context with an empty folder to fill. At its end the folder takes the place of `directory`
    in one step; after an error `directory` is what it was."""
    directory = directory.rstrip("/")
    settle(directory)
    new, old = f"{directory}.new", f"{directory}.old"
    tf.io.gfile.makedirs(new)
    try:
        yield new
        durable.sync_tree(new)
        if tf.io.gfile.exists(directory) and not _exchange(new, directory):
            tf.io.gfile.rename(directory, old)
        if not tf.io.gfile.exists(directory):
            tf.io.gfile.rename(new, directory)
        durable.sync(os.path.dirname(directory))
    finally:
        settle(directory)


def settle(directory: str) -> None:
    """Ends a replacement that was interrupted: one whole folder is left. For the process that
    writes there.
    """
    directory = directory.rstrip("/")
    if tf.io.gfile.exists(f"{directory}.old") and not tf.io.gfile.exists(directory):
        tf.io.gfile.rename(f"{directory}.old", directory)
    for leftover in (f"{directory}.old", f"{directory}.new"):
        if tf.io.gfile.exists(leftover):
            tf.io.gfile.rmtree(leftover)


def existing(directory: str) -> str:
    """The folder to read: `directory`, or its old content when a replacement was interrupted."""
    old = f"{directory.rstrip('/')}.old"
    is_between = not tf.io.gfile.exists(directory) and tf.io.gfile.isdir(old)
    return old if is_between else directory


def _exchange(one: str, other: str) -> bool:
    """Gives each of two local folders the other's name in one step; False where that cannot be."""
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
    if renameat2 is None or not durable.is_local(one):
        return False
    names = os.fsencode(one), os.fsencode(other)
    return renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0
