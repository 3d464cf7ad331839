"""Folders written so that a reader sees the old one or the new one, whenever the writer is killed.

model               the folder
model.new.partial   its successor while it is written; after an exchange, its predecessor
model.old.partial   its predecessor between two renames, where the system has no exchange
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

from data_pipeline.files import atomic_files, storage

# Names that nobody gives a folder of their own, such as model.old: these are removed.
_NEW, _OLD = ".new.partial", ".old.partial"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # From fcntl.h and stdio.h.


@contextlib.contextmanager
def replacing(directory: str) -> Iterator[str]:
    """A context with an empty folder to fill. At its end the folder takes the place of `directory`,
    if there is one; after an error `directory` is what it was.
    """
    # "model/" would have its successor inside it.
    directory = directory.rstrip("/")
    settle(directory)
    new, old = directory + _NEW, directory + _OLD
    storage.make_folder(new)
    try:
        yield new
        # Before the rename, after which a crash of the machine could leave names of empty files.
        atomic_files.sync_tree(new)
        if storage.exists(directory) and not _exchange(new, directory):
            storage.rename(directory, old)  # From here to the next rename, `existing` finds it.
        if not storage.exists(directory):
            storage.rename(new, directory)
        # The rename itself is safe only when the folder above is.
        atomic_files.sync(os.path.dirname(directory))
    finally:
        settle(directory)


def settle(directory: str) -> None:
    """Ends a replacement that was interrupted: one whole folder is left. For the process that
    writes there.
    """
    directory = directory.rstrip("/")
    if storage.exists(directory + _OLD) and not storage.exists(directory):
        storage.rename(directory + _OLD, directory)
    storage.remove_folder(directory + _OLD)
    storage.remove_folder(directory + _NEW)


def existing(directory: str) -> str:
    """The folder to read: `directory`, or its old content when a replacement was interrupted."""
    old = directory.rstrip("/") + _OLD
    is_between = not storage.exists(directory) and storage.is_folder(old)
    return old if is_between else directory


def _exchange(one: str, other: str) -> bool:
    """Swaps two local folders in one step; False where the system or the storage cannot."""
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)  # Linux has it.
    if renameat2 is None or storage.is_remote(one):
        return False
    names = os.fsencode(one), os.fsencode(other)
    return renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0
