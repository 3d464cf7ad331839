"""Sharded TFRecord folders with a manifest: written atomically, verified before use.

A folder holds `NAME-00000-of-00008.tfrecord` files, small extra files and `manifest.json`, which is
written last: a folder without it is not data. Each shard is shuffled when it is closed.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from data_pipeline import atomic_files
from data_pipeline.errors import UserError

MANIFEST = "manifest.json"
KIND = "albert_pretraining_records"
FORMAT_VERSION = 1
FULL_CHECK_BYTES = 256 << 20
_PARTIAL = ".partial"
_HEADER_BYTES, _FOOTER_BYTES = 12, 4


def check_output_dir(output_dir: str, overwrite: bool) -> None:
    """Raises UserError when `output_dir` holds finished data that may not be replaced."""
    if tf.io.gfile.exists(output_dir) and not tf.io.gfile.isdir(output_dir):
        raise UserError(f"--output_dir={output_dir} is a file; give a folder.")
    if tf.io.gfile.exists(os.path.join(output_dir, MANIFEST)) and not overwrite:
        raise UserError(
            f"--output_dir={output_dir} already holds data ({MANIFEST}). Choose another folder, or "
            "replace it with --overwrite."
        )


def frames(content: bytes) -> Iterator[bytes]:
    """The records of a TFRecord file with their framing (length, checksums).

    Raises:
      ValueError: the content ends inside a record.
    """
    start = 0
    while start < len(content):
        if start + _HEADER_BYTES > len(content):
            raise ValueError(f"record header cut off at byte {start}")
        (length,) = struct.unpack_from("<Q", content, start)
        end = start + _HEADER_BYTES + length + _FOOTER_BYTES
        if end > len(content):
            raise ValueError(f"record cut off at byte {start}")
        yield content[start:end]
        start = end


class RecordWriter:
    """Writes records to shards; use as a context manager and call `finish` at the end.

    Everything goes to a subfolder of `output_dir` first. `finish` shuffles each shard, moves it
    into place and writes the manifest. An exception removes what was written and leaves older data
    as they were.
    """

    def __init__(
        self, output_dir: str, num_shards: int, name: str, seed: int, overwrite: bool = False
    ):
        if num_shards < 1:
            raise UserError(f"--num_shards should be at least 1; received {num_shards}.")
        check_output_dir(output_dir, overwrite)
        self.output_dir = output_dir
        self.num_records = 0
        self._seed = seed
        self._names = [
            f"{name}-{shard:05d}-of-{num_shards:05d}.tfrecord" for shard in range(num_shards)
        ]
        self._partial_dir = os.path.join(output_dir, _PARTIAL)
        self._writers: list[tf.io.TFRecordWriter] = []

    def __enter__(self) -> RecordWriter:
        self._remove_partial()
        self._made_output_dir = not tf.io.gfile.exists(self.output_dir)
        tf.io.gfile.makedirs(self._partial_dir)
        self._writers = [tf.io.TFRecordWriter(self._partial(name)) for name in self._names]
        return self

    def __exit__(self, *unused_error) -> None:
        for writer in self._writers:
            writer.close()
        self._remove_partial()
        if self._made_output_dir and not tf.io.gfile.listdir(self.output_dir):
            tf.io.gfile.rmtree(self.output_dir)

    def _partial(self, name: str) -> str:
        return os.path.join(self._partial_dir, name)

    def _remove_partial(self) -> None:
        if tf.io.gfile.exists(self._partial_dir):
            tf.io.gfile.rmtree(self._partial_dir)

    def write(self, shard: int, serialized: bytes) -> None:
        """Appends one record to a shard."""
        self._writers[shard].write(serialized)
        self.num_records += 1

    def finish(self, manifest: dict[str, Any], extra_files: dict[str, bytes]) -> dict[str, Any]:
        """Puts shards and extra files in place, then the manifest; returns the manifest.

        Args:
          manifest: what to record beside kind, format_version, num_records, num_shards and files.
          extra_files: small files to put beside the shards, by name.
        """
        for writer in self._writers:
            writer.close()
        self._writers = []
        files = [self._shuffle_shard(shard) for shard in range(len(self._names))]
        for name, content in extra_files.items():
            with tf.io.gfile.GFile(self._partial(name), "wb") as file:
                file.write(content)
        manifest = {
            "kind": KIND,
            "format_version": FORMAT_VERSION,
            "num_records": self.num_records,
            "num_shards": len(files),
            "files": files,
            **manifest,
        }
        self._remove_older_data()
        for name in [*self._names, *extra_files]:
            final = os.path.join(self.output_dir, name)
            tf.io.gfile.rename(self._partial(name), final, overwrite=True)
        atomic_files.write_json(os.path.join(self.output_dir, MANIFEST), manifest)
        return manifest

    def _shuffle_shard(self, shard: int) -> dict[str, Any]:
        """Permutes the records of one shard in memory; returns its entry in the manifest."""
        path = self._partial(self._names[shard])
        with tf.io.gfile.GFile(path, "rb") as file:
            records = list(frames(file.read()))
        order = np.random.default_rng((self._seed, shard)).permutation(len(records))
        content = b"".join(records[i] for i in order)
        with tf.io.gfile.GFile(path, "wb") as file:
            file.write(content)
        return {
            "name": self._names[shard],
            "num_records": len(records),
            "bytes": len(content),
            "sha256": atomic_files.sha256(path),
        }

    def _remove_older_data(self) -> None:
        path = os.path.join(self.output_dir, MANIFEST)
        if not tf.io.gfile.exists(path):
            return
        try:
            files = read_manifest(self.output_dir)["files"]
        except UserError:
            files = []
        tf.io.gfile.remove(path)
        for entry in files:
            older = os.path.join(self.output_dir, os.path.basename(entry["name"]))
            if tf.io.gfile.exists(older):
                tf.io.gfile.remove(older)


def data_dir(data: str) -> str:
    """The folder meant by a folder, a file in it, or a pattern of files in it."""
    data = os.fspath(data)
    if tf.io.gfile.isdir(data):
        return data
    return os.path.dirname(data) if "*" in data or tf.io.gfile.exists(data) else data


def read_manifest(data: str) -> dict[str, Any]:
    """The manifest of a folder of records, with the folder as "directory".

    Args:
      data: the folder; a file or a pattern in it will do.

    Raises:
      UserError: there is no such folder, no manifest in it, or it describes something else.
    """
    folder = data_dir(data)
    path = os.path.join(folder, MANIFEST)
    if not tf.io.gfile.isdir(folder or "."):
        raise UserError(
            f"The data folder {data} does not exist. Make one with python -m "
            "data_pipeline.create_pretraining_data."
        )
    if not tf.io.gfile.exists(path):
        raise UserError(
            f"{folder} holds no {MANIFEST}: it is not a folder of records, or writing it was "
            "interrupted. Make it again with python -m data_pipeline.create_pretraining_data."
        )
    manifest = atomic_files.read_json(path)
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    version = manifest.get("format_version") if isinstance(manifest, dict) else None
    if (kind, version) != (KIND, FORMAT_VERSION):
        raise UserError(
            f"{path} should describe {KIND}, version {FORMAT_VERSION}; it says {kind!r}, version "
            f"{version!r}."
        )
    return {**manifest, "directory": folder}


def record_files(data: str) -> list[str]:
    """Paths of the shards that hold records, in the manifest's order."""
    folder = data_dir(data)
    entries = read_manifest(data)["files"]
    return [os.path.join(folder, entry["name"]) for entry in entries if entry["num_records"]]


def verify_records(data: str, full: bool | None = None) -> dict[str, Any]:
    """Compares the shards with the manifest, and returns the manifest.

    Args:
      data: as for `read_manifest`.
      full: compare contents (SHA-256) too, not only sizes; None: when all shards together hold at
        most 256 MiB.

    Raises:
      UserError: names the first file that is missing, empty, cut short or changed.
    """
    manifest = read_manifest(data)
    if not manifest["num_records"]:
        raise UserError(f"{data} holds no record; make it again from text with longer documents.")
    if full is None:
        full = sum(entry["bytes"] for entry in manifest["files"]) <= FULL_CHECK_BYTES
    advice = "Copy it again, or make the data again with --overwrite."
    for entry in manifest["files"]:
        path = os.path.join(data_dir(data), entry["name"])
        if not tf.io.gfile.exists(path):
            raise UserError(f"{path} is missing, though {MANIFEST} lists it. {advice}")
        size = tf.io.gfile.stat(path).length
        if size != entry["bytes"]:
            raise UserError(
                f"{path} should hold {entry['bytes']} bytes but holds {size}: it is damaged or cut "
                f"short. {advice}"
            )
        if full and atomic_files.sha256(path) != entry["sha256"]:
            raise UserError(f"{path} is damaged: its content differs from {MANIFEST}. {advice}")
    return manifest


def explain_read_error(data: str, error: Exception) -> UserError:
    """A UserError that names the damaged file behind an error raised while records were read."""
    try:
        verify_records(data, full=True)
    except UserError as found:
        return found
    return UserError(f"The records in {data} cannot be read: {str(error).splitlines()[0]}")
