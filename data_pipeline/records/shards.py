"""Writes records to the TFRecord files of a folder."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator
from typing import Any

from data_pipeline.files import atomic_files


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
