"""A reader sees the old file or the new one, also after a power cut."""

from __future__ import annotations

import errno
import hashlib
import os

import pytest

from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files


@pytest.fixture
def synced(monkeypatch):
    """Names in the order in which they were made safe, and names that files got."""
    seen, opened = [], {}
    os_open, replace = os.open, os.replace

    def open_and_note(path, *arguments, **named):
        handle = os_open(path, *arguments, **named)
        opened[handle] = os.path.basename(path)
        return handle

    def replace_and_note(old, new):
        replace(old, new)
        seen.append(f"-> {os.path.basename(new)}")

    monkeypatch.setattr(os, "open", open_and_note)
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append(opened[handle]))
    monkeypatch.setattr(os, "replace", replace_and_note)
    return seen


def test_json_round_trip_and_hash(tmp_path):
    path = tmp_path / "a.json"
    atomic_files.write_json(str(path), {"piece": "▁é", "n": [1]})
    assert path.read_text() == '{\n  "piece": "▁é",\n  "n": [\n    1\n  ]\n}\n'
    assert atomic_files.read_json(str(path)) == {"piece": "▁é", "n": [1]}
    assert atomic_files.file_sha256(str(path)) == hashlib.sha256(path.read_bytes()).hexdigest()
    atomic_files.write_json(str(path), {"b": 1, "a": 2}, indent=None, sort_keys=True)
    assert path.read_text() == '{"a": 2, "b": 1}\n' and os.listdir(tmp_path) == ["a.json"]
    with pytest.raises(ValueError, match="not JSON compliant"):
        atomic_files.write_json(str(path), float("nan"))


def test_several_may_write_the_same_file_at_once(tmp_path, monkeypatch):
    """On a cluster: workers in containers have the same process number, and tasks run twice."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    path = str(tmp_path / "a.bin")
    with atomic_files.writing(path) as slow:
        slow.write(b"whole ")
        slow.flush()
        with atomic_files.writing(path) as again:
            again.write(b"whole content")
        assert (tmp_path / "a.bin").read_bytes() == b"whole content"
        slow.write(b"content")
    assert (tmp_path / "a.bin").read_bytes() == b"whole content"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.bin"]


def test_failure_keeps_the_old_file(tmp_path, monkeypatch):
    path = str(tmp_path / "a.bin")
    atomic_files.write_bytes(path, b"old")
    with pytest.raises(TypeError):
        atomic_files.write_bytes(path, 7)

    def fail(handle):
        raise OSError(errno.EIO, "no disk")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no disk") as caught:
        atomic_files.write_text(path, "new")
    assert caught.value.filename == path
    assert (tmp_path / "a.bin").read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.bin"]


def test_a_file_is_safe_before_it_has_its_name(tmp_path, synced):
    (tmp_path / "a.bin").write_bytes(b"\r\nold")
    atomic_files.copy(str(tmp_path / "a.bin"), str(tmp_path / "b.bin"))
    atomic_files.write_text(str(tmp_path / "b.bin"), "n\xe9w")
    assert (tmp_path / "b.bin").read_bytes() == b"n\xc3\xa9w"
    assert sorted(os.listdir(tmp_path)) == ["a.bin", "b.bin"]
    partial = [name for name in synced if name.endswith(".partial")]
    assert synced == [partial[0], "-> b.bin", tmp_path.name, partial[1], "-> b.bin", tmp_path.name]


def test_other_file_systems(synced):
    atomic_files.write_text("ram://atomic/a", "text")
    atomic_files.copy("ram://atomic/a", "ram://atomic/b")
    assert atomic_files.storage.read_bytes("ram://atomic/b") == b"text"
    assert atomic_files.storage.names_in("ram://atomic") == ["a", "b"]
    atomic_files.sync_tree("gs://bucket")
    assert not synced


def test_a_tree_is_synced_from_files_to_folders(tmp_path, synced, monkeypatch):
    (tmp_path / "inner").mkdir()
    for name in ("a", "inner/b"):
        (tmp_path / name).touch()
    atomic_files.sync_tree(str(tmp_path))
    assert sorted(synced) == sorted([tmp_path.name, "a", "inner", "b"])
    assert synced.index("a") < synced.index(tmp_path.name)
    assert synced.index("b") < synced.index("inner")
    monkeypatch.chdir(tmp_path)
    atomic_files.sync("")
    assert synced[4:] == ["."]


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
        atomic_files.sync(str(tmp_path))
    else:
        with pytest.raises(OSError, match="not here"):
            atomic_files.sync(str(tmp_path))
    assert len(closed) == 1


def test_broken_json_names_the_file(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(UserError, match=r"a.json"):
        atomic_files.read_json(str(tmp_path / "a.json"))
