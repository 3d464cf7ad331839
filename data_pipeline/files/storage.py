"""Files on a disk, or on remote storage that TensorFlow supports by a scheme such as gs://."""

from __future__ import annotations

import concurrent.futures
import glob as local_glob
import os
import shutil
import threading
from collections.abc import Iterable, Sequence
from typing import IO, Any

from data_pipeline.errors import UserError

_THREADS = 64
_PATIENCE = 60  # Seconds.
_OF_TENSORFLOW_IO = ("s3", "hdfs", "viewfs", "har", "az", "oss")


def is_remote(path: str) -> bool:
    """Whether a path names a scheme, as in gs://bucket/file."""
    return "://" in os.fspath(path)


def check_reachable(path: str) -> None:
    """Raises UserError for a path below a file or with a scheme that TensorFlow does not support,
    and OpError if the storage does not answer.
    """
    if not is_remote(path):
        above = os.path.dirname(path)
        while above and above != "/" and not os.path.exists(above):
            above = os.path.dirname(above)
        if os.path.isfile(above):
            raise UserError(f"{above} is a file, so no path can be under it. Name another path.")
        return
    # Checked first: without a network, a lookup would only report that there is no such folder.
    scheme = path.partition("://")[0]
    if scheme in _gfile().get_registered_schemes():
        _ask(path)
        return
    advice = "Name a path on a disk, or gs://."
    if scheme in ("http", "https", "ftp"):
        advice = "Download the files to a disk, and name their path there."
    elif scheme in _OF_TENSORFLOW_IO:
        advice = (
            f"{scheme}:// needs tensorflow-io, which the programs do not load. Copy or mount it to "
            "a disk, or use gs://."
        )
    raise UserError(f"TensorFlow alone does not support {scheme}://. {advice}")


def _ask(path: str) -> None:
    """Looks up a remote path; raises its error, or UserError after a minute without an answer."""
    # Without a limit, TensorFlow retries each call for many minutes.
    errors: list[Exception] = []

    def ask() -> None:
        try:
            _gfile().exists(path)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=ask, daemon=True)  # A call that hangs ends with the program.
    thread.start()
    thread.join(_PATIENCE)
    if thread.is_alive():
        raise UserError(
            f"The storage has not answered for {_PATIENCE} seconds. Check the network and "
            "your login."
        )
    if errors:
        raise errors[0]


def _gfile() -> Any:
    # TensorFlow is imported for remote files only, so that processes that make data start fast and
    # take little memory.
    from tensorflow.io import gfile

    return gfile


def open_file(path: str, mode: str) -> IO[bytes]:
    """Opens a file in a binary mode ("rb" or "wb")."""
    return _gfile().GFile(path, mode) if is_remote(path) else open(path, mode)


def read_bytes(path: str) -> bytes:
    """The content of a file."""
    with open_file(path, "rb") as file:
        return file.read()


def exists(path: str) -> bool:
    """Whether there is a file or folder."""
    return _gfile().exists(path) if is_remote(path) else os.path.exists(path)


def is_folder(path: str) -> bool:
    """Whether there is a folder."""
    return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def size(path: str) -> int:
    """Bytes of a file."""
    return _gfile().stat(path).length if is_remote(path) else os.path.getsize(path)


def sizes(paths: Sequence[str]) -> list[int]:
    """Bytes of each file; remote files are queried in parallel, since each answer takes a while."""
    if not any(map(is_remote, paths)):
        return list(map(size, paths))
    with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(size, paths))


def sizes_in(folder: str, names: Iterable[str]) -> dict[str, int]:
    """Maps names of files in a folder to their sizes in bytes; missing files are left out."""
    if not is_remote(folder):
        with os.scandir(folder or ".") as entries:
            found = {entry.name: entry for entry in entries if entry.is_file()}
        return {name: found[name].stat().st_size for name in names if name in found}
    # A single listing shows which files exist, so that thousands of them take only seconds.
    present = set(names_in(folder))
    names = [name for name in names if name in present]
    return dict(zip(names, sizes([os.path.join(folder, name) for name in names])))


def match(pattern: str) -> list[str]:
    """Files and folders that match a pattern with * and ?, sorted. ** matches folders at any depth;
    it is a UserError on remote storage.

    An existing path is not a pattern: the file "a[1].txt" is the only match of "a[1].txt", and
    "a[1]/*.txt" is searched in the folder "a[1]".
    """
    if is_remote(pattern) and "**" in pattern:
        raise UserError(f"{pattern}: ** works only for local files. Name a pattern for each level.")
    if exists(pattern):
        return [pattern]
    if is_remote(pattern):
        return sorted(_gfile().glob(pattern))
    folder = os.path.dirname(pattern)
    while folder and not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    rest = pattern[len(folder) :]
    return sorted(local_glob.glob(local_glob.escape(folder) + rest, recursive=True))


def names_in(folder: str) -> list[str]:
    """Names in a folder, sorted; none when there is no such folder."""
    if not exists(folder):
        return []
    names = _gfile().listdir(folder) if is_remote(folder) else os.listdir(folder)
    # TensorFlow adds a slash to the names of folders in a bucket.
    return sorted(name.rstrip("/") for name in names)


def make_folder(path: str) -> None:
    """Makes a folder and those above it, unless they exist."""
    _gfile().makedirs(path) if is_remote(path) else os.makedirs(path, exist_ok=True)


def rename(old: str, new: str) -> None:
    """Renames a file, replacing any file of the new name."""
    _gfile().rename(old, new, overwrite=True) if is_remote(old) else os.replace(old, new)


def copy(old: str, new: str) -> None:
    """Copies a file."""
    is_local = not is_remote(old) and not is_remote(new)
    shutil.copyfile(old, new) if is_local else _gfile().copy(old, new)


def remove(path: str) -> None:
    """Removes a file, if it exists."""
    if exists(path):
        _gfile().remove(path) if is_remote(path) else os.remove(path)


def remove_folder(path: str) -> None:
    """Removes a folder with all that is in it, if it exists."""
    if exists(path):
        _gfile().rmtree(path) if is_remote(path) else shutil.rmtree(path)
