"""Files that are whole after a power cut: the order of writing, syncing and renaming."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
import tensorflow as tf

from albert_tf import durable


@pytest.fixture
def synced(monkeypatch):
    """Paths in the order in which they were made safe, and names that files got."""
    seen, opened = [], {}
    os_open, rename = os.open, tf.io.gfile.rename

    def open_and_note(path, *flags):
        handle = os_open(path, *flags)
        opened[handle] = path
        return handle

    def rename_and_note(old, new, overwrite=False):
        rename(old, new, overwrite)
        seen.append(f"-> {new}")

    monkeypatch.setattr(os, "open", open_and_note)
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append(opened[handle]))
    monkeypatch.setattr(tf.io.gfile, "rename", rename_and_note)
    return seen


@pytest.mark.parametrize(
    ("path", "local"), [("/a/b", True), ("a", True), ("gs://b/a", False), ("", True)]
)
def test_local_paths(path, local):
    assert durable.is_local(path) is local


def test_a_text_is_safe_before_it_has_its_name(tmp_path, synced):
    path = str(tmp_path / "a.txt")
    durable.write_text(path, "old")
    durable.write_text(path, "new")
    assert Path(path).read_text() == "new" and os.listdir(tmp_path) == ["a.txt"]
    assert synced == [f"{path}.partial", f"-> {path}", str(tmp_path)] * 2


def test_a_write_that_fails_leaves_the_old_text(tmp_path, monkeypatch):
    path = str(tmp_path / "a.txt")
    durable.write_text(path, "old")

    def fail(path):
        raise OSError(errno.EIO, "no disk")

    monkeypatch.setattr(durable, "sync", fail)
    with pytest.raises(OSError, match="no disk"):
        durable.write_text(path, "new")
    assert Path(path).read_text() == "old"


def test_json(tmp_path):
    path = tmp_path / "a.json"
    durable.write_json(str(path), {"b": 1, "a": [2]})
    assert path.read_text() == '{\n  "b": 1,\n  "a": [\n    2\n  ]\n}\n'
    durable.write_json(str(path), {"b": 1, "a": 2}, sort_keys=True)
    assert path.read_text().index('"a"') < path.read_text().index('"b"')
    assert json.loads(path.read_text()) == {"a": 2, "b": 1}


def test_a_tree_is_synced_from_files_to_folders(tmp_path, synced):
    (tmp_path / "inner").mkdir()
    for name in ("a", "inner/b"):
        (tmp_path / name).touch()
    durable.sync_tree(str(tmp_path))
    assert sorted(synced) == sorted(
        str(path) for path in (tmp_path, tmp_path / "a", tmp_path / "inner", tmp_path / "inner/b")
    )
    assert synced.index(str(tmp_path / "a")) < synced.index(str(tmp_path))
    assert synced.index(str(tmp_path / "inner/b")) < synced.index(str(tmp_path / "inner"))


def test_the_current_folder_and_other_file_systems(tmp_path, synced, monkeypatch):
    monkeypatch.chdir(tmp_path)
    durable.sync("")
    durable.sync("gs://bucket/file")
    durable.sync_tree("gs://bucket")
    assert synced == ["."]


@pytest.mark.parametrize(
    ("number", "is_passed_over"), [(errno.EINVAL, True), (errno.ENOTSUP, True), (errno.EIO, False)]
)
def test_file_systems_that_cannot_sync_folders(tmp_path, monkeypatch, number, is_passed_over):
    closed, close = [], os.close
    monkeypatch.setattr(os, "close", lambda handle: closed.append(handle) or close(handle))

    def fail(handle):
        raise OSError(number, "not here")

    monkeypatch.setattr(os, "fsync", fail)
    if is_passed_over:
        durable.sync(str(tmp_path))
    else:
        with pytest.raises(OSError, match="not here"):
            durable.sync(str(tmp_path))
    assert len(closed) == 1
