"""Data that are replaced: killed before any change of a file, no reader is ever misled."""

import contextlib
import os
import shutil
from unittest import mock

import pytest

from data_pipeline.corpus.documents import Corpus
from data_pipeline.files import storage
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.records import record_folder


class Killed(BaseException):
    """Stands for kill -9: no file changes after it."""


@contextlib.contextmanager
def killed_before(number):
    """From the change of that number on, every rename and removal fails; yields the changes."""
    changes = []

    def counted(change):
        def call(*args):
            changes.append(args)
            if len(changes) > number:
                raise Killed
            change(*args)

        return call

    names = ("rename", "remove", "remove_folder")
    with mock.patch.multiple(storage, **{name: counted(getattr(storage, name)) for name in names}):
        yield changes


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def create(tmp_path, small_corpus, wordpiece, monkeypatch):
    """(folder, seed) -> makes records of a small corpus there, in place of others."""
    monkeypatch.setattr(record_folder, "_COMMIT_THREADS", 1)
    monkeypatch.setattr(os, "fsync", lambda file: None)  # A kill is no power cut; much faster.
    (tmp_path / "a.txt").write_text(small_corpus(18))

    def create(folder, seed):
        settings = PretrainingSettings(max_seq_length=32, dupe_factor=2, seed=seed)
        corpus = Corpus(str(tmp_path / "a.txt"))
        create_pretraining_data(
            corpus, str(folder), wordpiece, settings, shard_mb=0.0005, overwrite=True
        )

    return create


def test_killed_before_any_rename_or_removal(tmp_path, create):
    """No manifest names a shard that is missing, and the same command gives the same result."""
    create(tmp_path / "old", seed=1)
    create(tmp_path / "new", seed=2)
    expected, seen = contents(tmp_path / "new"), []
    number, is_finished = 0, False
    while not is_finished:
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "old", folder)
        with killed_before(number) as changes, contextlib.suppress(Killed):
            create(folder, seed=2)
        is_finished = len(changes) <= number
        if (folder / "manifest.json").exists():
            seen.append(record_folder.verify_records(str(folder), full=True)["seed"])
        create(folder, seed=2)
        assert contents(folder) == expected
        number += 1
    # Some points before the old manifest goes, many without one, two after the new one is there.
    assert len(expected) >= 8 and number > 3 * len(expected)
    assert seen == sorted(seen) and set(seen) == {1, 2} and len(seen) < number - len(expected)


def test_a_rename_that_copies_may_be_killed_in_the_middle(tmp_path, create):
    """On gs:// a manifest may be there under both names: the new data are not taken for old."""
    create(tmp_path / "a", seed=1)
    expected = contents(tmp_path / "a")
    partial = tmp_path / "a" / ".partial"
    partial.mkdir()
    shutil.copy(tmp_path / "a" / "manifest.json", partial)
    record_folder.complete_commit(str(tmp_path / "a"))
    assert contents(tmp_path / "a") == expected
