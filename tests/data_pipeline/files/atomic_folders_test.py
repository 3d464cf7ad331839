"""A folder that is replaced is there, old or new, whenever the process is killed."""

import os
import shutil
from pathlib import Path

import pytest

from data_pipeline.files import atomic_folders
from tests.crash_points import crash_points

OLD, NEW = ({name: f"{name} {age}" for name in ("weights", "config")} for age in ("old", "new"))


def content(folder):
    return {path.name: path.read_text() for path in Path(folder).iterdir()}


def fill(folder, files):
    for name, text in files.items():
        (Path(folder) / name).write_text(text)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "best").mkdir()
    fill(tmp_path / "best", OLD)
    return tmp_path / "best"


@pytest.mark.parametrize("can_exchange", [True, pytest.param(False, marks=pytest.mark.table)])
def test_killed_at_every_change(folder, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr(atomic_folders, "_exchange", lambda one, other: False)

    def prepare():
        atomic_folders.settle(str(folder))
        assert os.listdir(folder.parent) == ["best"]
        shutil.rmtree(folder)
        folder.mkdir()
        fill(folder, OLD)

    def replace():
        with atomic_folders.replacing(str(folder)) as new:
            fill(new, NEW)

    found = []
    for _ in crash_points(prepare, replace):
        assert folder.exists() or not can_exchange
        found.append(content(atomic_folders.existing(str(folder))))
    changed = found.index(NEW)
    assert found == [OLD] * changed + [NEW] * (len(found) - changed) and changed > 0
    assert len(found) > 3


def test_an_error_leaves_the_old_folder(folder, monkeypatch):
    """And a replacement without an exchange the new one."""
    with pytest.raises(OSError, match="no room"), atomic_folders.replacing(f"{folder}/") as new:
        fill(new, NEW)
        raise OSError("no room")
    assert content(folder) == OLD and os.listdir(folder.parent) == ["best"]
    monkeypatch.setattr(atomic_folders, "_exchange", lambda one, other: False)
    with atomic_folders.replacing(str(folder)) as new:
        fill(new, NEW)
    assert content(folder) == NEW and os.listdir(folder.parent) == ["best"]
    folder.rename(f"{folder}.old.partial")
    assert atomic_folders.existing(str(folder)) == f"{folder}.old.partial"
    atomic_folders.settle(str(folder))
    assert content(folder) == NEW and os.listdir(folder.parent) == ["best"]


def test_a_folder_where_there_was_none(tmp_path):
    path = str(tmp_path / "folder")
    with atomic_folders.replacing(path) as new:
        fill(new, NEW)
    assert atomic_folders.existing(path) == path
    assert content(path) == NEW and os.listdir(tmp_path) == ["folder"]
