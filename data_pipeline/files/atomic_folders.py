"""Replaces folders atomically: a reader sees the old or the new one, whenever the writer is killed.

model               the folder
model.new.partial   its successor while it is written; after an exchange, its predecessor
model.old.partial   its predecessor between two renames, if the system cannot exchange folders
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

from data_pipeline.files import atomic_files, storage

# Unlike model.old, names that users would not give their own folders: such folders are removed.
_NEW, _OLD = ".new.partial", ".old.partial"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # From fcntl.h and stdio.h.


@contextlib.contextmanager
def replacing(directory: str) -> Iterator[str]:
    """A context with an empty folder to fill. When the context ends, the folder becomes `directory`
    and replaces an existing one; after an error, `directory` is unchanged.
    """
    # With the slash of "model/", the new folder would be inside the old one.
    directory = directory.rstrip("/")
    settle(directory)
    new, old = directory + _NEW, directory + _OLD
    storage.make_folder(new)
    try:
        yield new
        # Sync before the rename: otherwise a crash of the machine could leave empty files.
        atomic_files.sync_tree(new)
        if storage.exists(directory) and not _exchange(new, directory):
            storage.rename(directory, old)  # From here to the next rename, `existing` finds it.
        if not storage.exists(directory):
            storage.rename(new, directory)
        # The rename itself is on the disk only once the parent folder is synced.
        atomic_files.sync(os.path.dirname(directory))
    finally:
        settle(directory)


def settle(directory: str) -> None:
    """Completes an interrupted replacement, so that one complete folder is left. Only the process
    that writes there may call it.
    """
    directory = directory.rstrip("/")
    if storage.exists(directory + _OLD) and not storage.exists(directory):
        storage.rename(directory + _OLD, directory)
    storage.remove_folder(directory + _OLD)
    storage.remove_folder(directory + _NEW)


def existing(directory: str) -> str:
    """The folder to read: `directory`, or its predecessor if a replacement was interrupted."""
    old = directory.rstrip("/") + _OLD
    is_between = not storage.exists(directory) and storage.is_folder(old)
    return old if is_between else directory


def _exchange(one: str, other: str) -> bool:
    """Swaps two local folders in one step; False if the system or the storage cannot do this."""
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)  # Available on Linux.
    if renameat2 is None or storage.is_remote(one):
        return False
    names = os.fsencode(one), os.fsencode(other)
    return renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0
