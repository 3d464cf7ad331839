"""Sharded TFRecord folders with a manifest: published as a whole, verified before use.

A folder holds *.tfrecord files, small extra files and `manifest.json`. Files are written to the
subfolder `.partial` and then moved, the manifest last: a folder without it is not data.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from data_pipeline.errors import UserError, message_of
from data_pipeline.files import atomic_files, sealed, storage

MANIFEST = "manifest.json"
LABEL_COUNTS_FILE = "label_counts.json"
FULL_CHECK_BYTES = 256 << 20  # With more data, only sizes are compared before each run.
_PARTIAL = ".partial"
_OLDER_MANIFEST = "replaced-manifest.json"
_ADVICE = "Copy it again, or make the data again with --overwrite."
_COMMIT_THREADS = 16  # On gs:// each rename waits for an answer.
_HASH_THREADS = 16  # hashlib releases the GIL.


class Kind(NamedTuple):
    """A kind of records, as named in a manifest."""

    name: str
    version: int  # The version of the format.
    program: str  # The command that makes such a folder.


PRETRAINING = Kind(
    "albert_pretraining_records", 2, "python -m data_pipeline.create_pretraining_data"
)
FINETUNING = Kind("albert_finetuning_records", 1, "python -m albert_tf.create_finetuning_data")


def write_shard(chunks: Iterable[tuple[int, bytes]], path: str) -> dict[str, Any]:
    """Writes chunks to a file, each a number of records and their frames. Returns the file's
    num_records, bytes and sha256, for the manifest.
    """
    digest, size, num_records = hashlib.sha256(), 0, 0
    with atomic_files.writing(path) as file:
        for count, content in chunks:
            file.write(content)
            digest.update(content)  # Saves reading the file again.
            size += len(content)
            num_records += count
    return {"num_records": num_records, "bytes": size, "sha256": digest.hexdigest()}


def write_shards(
    frames: Iterator[bytes], folder: str, prefix: str, records_per_file: int
) -> Iterator[dict[str, Any]]:
    """Writes frames (`example_bytes.frame`) to as many files as needed, <prefix>-00000.tfrecord and
    so on, and yields each file's manifest entry: its name and the fields from `write_shard`.
    """
    for number in itertools.count():
        # Checked before a file is opened, to avoid an empty file after a full last one.
        first = next(frames, None)
        if first is None:
            return
        name = f"{prefix}-{number:05d}.tfrecord"
        others = itertools.islice(frames, records_per_file - 1)
        chunks = ((1, frame) for frame in itertools.chain([first], others))
        yield {"name": name, **write_shard(chunks, os.path.join(folder, name))}


def check_output_dir(output_dir: str, overwrite: bool) -> None:
    """Raises UserError when `output_dir` holds finished data that may not be replaced."""
    if storage.exists(output_dir) and not storage.is_folder(output_dir):
        raise UserError(f"--output_dir={output_dir} is a file; give a folder.")
    if storage.exists(os.path.join(output_dir, MANIFEST)) and not overwrite:
        raise UserError(
            f"--output_dir={output_dir} already holds data ({MANIFEST}). Choose another folder, or "
            "replace it with --overwrite."
        )


def partial_dir(output_dir: str) -> str:
    """The subfolder for the files of an unfinished folder."""
    return os.path.join(output_dir, _PARTIAL)


@contextlib.contextmanager
def making(output_dir: str) -> Iterator[str]:
    """A context with an empty `partial_dir`; an error removes it."""
    folder = partial_dir(output_dir)
    storage.remove_folder(folder)
    storage.make_folder(folder)
    try:
        yield folder
    except BaseException:
        storage.remove_folder(folder)
        raise


def write_manifest(
    folder: str, manifest: dict[str, Any], extra_files: Iterable[str] = ()
) -> dict[str, Any]:
    """Writes the manifest of a folder, with the hashes of the small files `extra_files` in it.
    Returns the manifest with kind and format_version, without the hashes.
    """
    whole = _described(manifest, PRETRAINING)
    content = sealed.seal(whole, sealed.hashes_of(folder, extra_files))
    atomic_files.write_json(os.path.join(folder, MANIFEST), content)
    return whole


def _described(manifest: dict[str, Any], kind: Kind) -> dict[str, Any]:
    return {"kind": kind.name, "format_version": kind.version, **manifest}


def commit(
    output_dir: str,
    manifest: dict[str, Any],
    extra_files: dict[str, bytes],
    kind: Kind = PRETRAINING,
    prefix: str = "",
) -> dict[str, Any]:
    """Replaces older data by the finished files in `partial_dir` whose names begin with `prefix`,
    publishes the manifest, and returns it. Its "files" lists the shards; `extra_files` are small
    files to put next to them. `complete_commit` completes an interrupted commit.

    A file that differs from what was written, for example by another writer, is a UserError.
    """
    # Other records have another prefix, which separates concurrent writers where locks are missing.
    path = os.path.join(partial_dir(output_dir), prefix)
    for name, content in extra_files.items():
        atomic_files.write_bytes(path + name, content)
    ready = _described(manifest | {"extra_files": sorted(extra_files)}, kind)
    hashes = {name: hashlib.sha256(extra_files[name]).hexdigest() for name in ready["extra_files"]}
    atomic_files.write_json(path + MANIFEST, sealed.seal(ready, hashes))
    # From here on the data are finished: if the rest is interrupted, the next run completes it.
    published = complete_commit(output_dir)
    if published is None or content_fingerprint(published) != content_fingerprint(ready):
        raise UserError(
            f"--output_dir={output_dir}: a file there differs from what was just written. Is "
            "another process writing to this folder? Run the same command again: intact files "
            "are kept."
        )
    return ready


def content_fingerprint(manifest: dict[str, Any]) -> str:
    """Hexadecimal SHA-256, equal for folders with the same records in the same files."""
    return hashlib.sha256(json.dumps(manifest["files"]).encode("utf-8")).hexdigest()


def complete_commit(output_dir: str) -> dict[str, Any] | None:
    """Completes an interrupted commit and returns its manifest, or None if there is none. Files
    that do not match the manifest are removed together with it, and have to be made again.
    """
    folder = partial_dir(output_dir)
    names = [name for name in storage.names_in(folder) if name.endswith(MANIFEST)]
    ready = next((name for name in names if name != _OLDER_MANIFEST), None)
    if ready is None:
        return None
    prefix = os.path.join(folder, ready.removesuffix(MANIFEST))
    manifest = sealed.read(prefix + MANIFEST, "Delete it, and run the same command again.").values
    if wrong := _not_as_written(output_dir, prefix, manifest["files"]):
        for path in (*wrong, prefix + MANIFEST):
            storage.remove(path)
        return None
    _remove_older_data(output_dir, prefix + MANIFEST)

    def publish(name: str) -> None:
        if storage.exists(prefix + name):
            storage.rename(prefix + name, os.path.join(output_dir, name))

    names = [*(entry["name"] for entry in manifest["files"]), *manifest["extra_files"]]
    with concurrent.futures.ThreadPoolExecutor(_COMMIT_THREADS) as pool:
        list(pool.map(publish, names))
    publish(MANIFEST)  # Last: a folder without it is not data.
    storage.remove_folder(folder)
    return manifest


def _not_as_written(output_dir: str, prefix: str, entries: list[dict[str, Any]]) -> list[str]:
    """Paths in `partial_dir` of files that, there or published, do not match their manifest."""

    def wrong_path(entry: dict[str, Any]) -> str | None:
        path = prefix + entry["name"]
        if not storage.exists(path):
            path = os.path.join(output_dir, entry["name"])
        # Contents are compared on local disks only; remote files would have to be downloaded.
        is_right = (
            storage.exists(path)
            and storage.size(path) == entry["bytes"]
            and (storage.is_remote(path) or atomic_files.file_sha256(path) == entry["sha256"])
        )
        return None if is_right else prefix + entry["name"]

    with concurrent.futures.ThreadPoolExecutor(_HASH_THREADS) as pool:
        return [path for path in pool.map(wrong_path, entries) if path is not None]


def _remove_older_data(output_dir: str, ready: str) -> None:
    """Removes the manifest of older data and then its shards, so that no manifest lists missing
    files. `ready` is the path of the newer manifest.
    """
    # The old manifest stays in the partial folder until its shards are removed, so that an
    # interrupted removal can be completed. New files, which may have the same names, follow later.
    path = os.path.join(output_dir, MANIFEST)
    removing = os.path.join(partial_dir(output_dir), _OLDER_MANIFEST)
    # If equal, the data is the same, or already published where renaming copies, as on gs://.
    if storage.exists(path) and storage.read_bytes(path) != storage.read_bytes(ready):
        storage.rename(path, removing)
    if not storage.exists(removing):
        return
    for kind in (PRETRAINING, FINETUNING):
        with contextlib.suppress(UserError):
            for entry in _described_by(removing, kind).values["files"]:
                storage.remove(os.path.join(output_dir, os.path.basename(entry["name"])))
    storage.remove(removing)


def data_dir(data: str) -> str:
    """The folder, given its path, a file in it, or a pattern of files in it."""
    data = os.fspath(data)
    if storage.is_folder(data):
        return data
    return os.path.dirname(data) if "*" in data or storage.exists(data) else data


def read_manifest(data: str, kind: Kind = PRETRAINING) -> dict[str, Any]:
    """Reads the manifest of a folder of records and adds the folder as "directory". `data` is the
    folder, or a file or pattern in it. A manifest that is missing, damaged or of another kind is a
    UserError, and so is a small file next to it that was changed.
    """
    folder = data_dir(data)
    path = os.path.join(folder, MANIFEST)
    if not storage.is_folder(folder or "."):
        raise UserError(f"The data folder {data} does not exist. Make one with {kind.program}.")
    if not storage.exists(path):
        raise UserError(
            f"{folder} holds no {MANIFEST}: it is not a folder of records, or writing it was "
            f"interrupted. Make it again with {kind.program}."
        )
    found = _described_by(path, kind)
    found.check(folder, found.hashes, _ADVICE)
    return {**found.values, "directory": folder}


def _described_by(path: str, kind: Kind) -> sealed.Sealed:
    """The content of a manifest file; UserError if it describes another kind of data."""
    found = sealed.read(path, _ADVICE)
    name, version = found.values.get("kind"), found.values.get("format_version")
    if (name, version) != (kind.name, kind.version):
        raise UserError(
            f"{path} should describe {kind.name}, version {kind.version}; it says {name!r}, "
            f"version {version!r}. Make a folder of this kind with {kind.program}."
        )
    return found


def record_files(manifest: dict[str, Any]) -> list[str]:
    """Paths of the shards that hold records, in the order of the manifest."""
    folder, entries = manifest["directory"], manifest["files"]
    return [os.path.join(folder, entry["name"]) for entry in entries if entry["num_records"]]


def verify_records(data: str, full: bool | None = None, kind: Kind = PRETRAINING) -> dict[str, Any]:
    """Compares the shards with the manifest, and returns it. `full`: compare contents (SHA-256),
    not only sizes; None: only if all shards together have at most 256 MiB. The first file that is
    missing, truncated or changed is a UserError, and so is a folder without records.
    """
    manifest = read_manifest(data, kind)
    if not manifest["num_records"]:
        raise UserError(f"{data} holds no record; make it again from text with longer documents.")
    if full is None:
        full = sum(entry["bytes"] for entry in manifest["files"]) <= FULL_CHECK_BYTES
    entries, folder = manifest["files"], manifest["directory"]
    sizes = storage.sizes_in(folder, [entry["name"] for entry in entries])
    for entry in entries:
        path, size = os.path.join(folder, entry["name"]), sizes.get(entry["name"])
        if size is None:
            raise UserError(f"{path} is missing, though {MANIFEST} lists it. {_ADVICE}")
        if size != entry["bytes"]:
            raise UserError(
                f"{path} should hold {entry['bytes']} bytes but holds {size}: it is damaged or cut "
                f"short. {_ADVICE}"
            )
    paths = [os.path.join(folder, entry["name"]) for entry in entries] if full else []
    with concurrent.futures.ThreadPoolExecutor(_HASH_THREADS) as pool:
        for path, entry, digest in zip(paths, entries, pool.map(atomic_files.file_sha256, paths)):
            if digest != entry["sha256"]:
                raise UserError(
                    f"{path} is damaged: its content differs from {MANIFEST}. {_ADVICE}"
                )
    return manifest


def explain_read_error(data: str, error: Exception, kind: Kind = PRETRAINING) -> UserError:
    """A UserError that names the damaged file which caused an error while reading records."""
    try:
        verify_records(data, full=True, kind=kind)
    except UserError as found:
        return found
    return UserError(f"The records in {data} cannot be read: {message_of(error)}.")
