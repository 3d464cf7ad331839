"""JSON files with hashes that show whether they, and files next to them, were changed.

{"task": "span", "sha256": {"all other entries": "8f14...", "spiece.model": "73ab..."}}

Folders of earlier versions have no such entry and are not compared. To change a file
on purpose, delete the entry.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files, storage

KEY = "sha256"
_OWN = "all other entries"


class Sealed(NamedTuple):
    """A JSON object that was read, with the hashes in it."""

    path: str
    values: dict[str, Any]  # All entries except the hashes.
    hashes: dict[str, str]  # Hashes of files by name; empty if an earlier version wrote the JSON.

    def check(self, folder: str, names: Iterable[str], advice: str) -> None:
        """Compares files of a folder with their hashes; files without a hash are skipped. The first
        missing or changed file is a UserError. `advice` is a sentence that says what to do with a
        damaged file.
        """
        for name in names:
            if name not in self.hashes:
                continue
            path = os.path.join(folder, name)
            if not storage.exists(path) or storage.is_folder(path):
                raise UserError(f"{path} is missing, though {self.path} lists it. {advice}")
            if atomic_files.file_sha256(path) != self.hashes[name]:
                raise UserError(
                    f"{path} is damaged or was changed: its hash differs from that in {self.path}. "
                    f"{advice} If you changed it on purpose, delete the entry {KEY!r} there."
                )


def seal(values: Mapping[str, Any], hashes: Mapping[str, str]) -> dict[str, Any]:
    """The entries of a JSON file, extended by their own hash and the hashes of other files."""
    return {**values, KEY: {_OWN: _hash(values), **hashes}}


def hashes_of(folder: str, names: Iterable[str]) -> dict[str, str]:
    """Maps the names of files, which are relative to the folder, to their SHA-256."""
    return {name: atomic_files.file_sha256(os.path.join(folder, name)) for name in sorted(names)}


def read(path: str, advice: str) -> Sealed:
    """Reads the JSON that `seal` made, or a JSON object of an earlier version. A damaged one is a
    UserError. `advice` is a sentence that says what to do in that case.
    """
    if storage.is_folder(path):
        raise UserError(f"{path} should be a file but is a folder. {advice}")
    try:
        # Earlier versions wrote numbers that JSON does not support, such as NaN.
        values = json.loads(storage.read_bytes(path), parse_constant=lambda name: None)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged: it is not JSON ({error}). {advice}") from None
    if not isinstance(values, dict):
        raise UserError(f"{path} is damaged: it should hold a JSON object. {advice}")
    hashes = values.pop(KEY, None)
    if not _is_own(values, hashes):
        raise UserError(
            f"{path} is damaged or was changed: its content does not match its hash. {advice} If "
            f"you changed it on purpose, delete its entry {KEY!r}."
        )
    return Sealed(
        path, values, {name: each for name, each in (hashes or {}).items() if name != _OWN}
    )


def _is_own(values: Mapping[str, Any], hashes: Any) -> bool:
    """Whether JSON is unchanged; `hashes` is its entry KEY, or None if it has none."""
    if hashes is None:  # Written by an earlier version, unless the name KEY itself was damaged.
        return not any(isinstance(value, dict) and _OWN in value for value in values.values())
    return isinstance(hashes, dict) and hashes.get(_OWN) == _hash(values)


def _hash(values: Mapping[str, Any]) -> str:
    """Hexadecimal SHA-256 of JSON, independent of the order of its entries."""
    as_read = json.loads(json.dumps(values))  # Makes tuples lists and keys strings.
    return hashlib.sha256(json.dumps(as_read, sort_keys=True).encode("utf-8")).hexdigest()
