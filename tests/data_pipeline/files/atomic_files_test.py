"""A reader sees the old file or the new one."""

import hashlib
import os

import pytest

from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files


def test_json_round_trip_and_hash(tmp_path):
    path = str(tmp_path / "a.json")
    atomic_files.write_json(path, {"piece": "▁é", "n": 1})
    assert atomic_files.read_json(path) == {"piece": "▁é", "n": 1}
    assert (
        atomic_files.file_sha256(path)
        == hashlib.sha256((tmp_path / "a.json").read_bytes()).hexdigest()
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


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


def test_failure_keeps_the_old_file(tmp_path):
    path = str(tmp_path / "a.bin")
    atomic_files.write_bytes(path, b"old")
    with pytest.raises(TypeError):
        atomic_files.write_bytes(path, 7)
    assert (tmp_path / "a.bin").read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.bin"]


def test_broken_json_names_the_file(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(UserError, match=r"a.json"):
        atomic_files.read_json(str(tmp_path / "a.json"))
