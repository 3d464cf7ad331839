"""Records to the TFRecord files of a folder."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator
from typing import Any

from data_pipeline.files import atomic_files


def write_shards(
    frames: Iterator[bytes], folder: str, prefix: str, records_per_file: int
) -> Iterator[dict[str, Any]]:
    """Writes frames (`example_bytes.frame`) to as many files as it takes, <prefix>-00000.tfrecord
    and so on, and yields the manifest's entry of each: name, num_records, bytes and sha256.
    """
    for number in itertools.count():
        first = next(frames, None)
        if first is None:
            return
        name = f"{prefix}-{number:05d}.tfrecord"
        digest, size, count = hashlib.sha256(), 0, 0
        with atomic_files.writing(os.path.join(folder, name)) as file:
            for frame in itertools.chain([first], itertools.islice(frames, records_per_file - 1)):
                file.write(frame)
                digest.update(frame)
                size += len(frame)
                count += 1
        yield {"name": name, "num_records": count, "bytes": size, "sha256": digest.hexdigest()}
