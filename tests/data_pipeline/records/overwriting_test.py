"""Data that are replaced: killed before any change of a file, no reader is ever misled."""

import os
import shutil

import pytest

from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.records import record_folder
from tests.crash_points import crash_points


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def create(tmp_path, small_corpus, wordpiece, monkeypatch):
    """(folder, seed) -> makes records of a small corpus there, in place of others."""
    monkeypatch.setattr(record_folder, "_COMMIT_THREADS", 1)
    monkeypatch.setattr(os, "fsync", lambda file: None)  # A kill is no power cut; much faster.
    (tmp_path / "a.txt").write_text(small_corpus(18))

    def create(folder, seed):
        settings = PretrainingSettings(max_seq_length=32, seed=seed)
        corpus = Corpus(str(tmp_path / "a.txt"))
        create_pretraining_data(
            corpus, str(folder), wordpiece, settings, shard_mb=0.0005, overwrite=True
        )

    return create


def test_killed_before_any_change_of_a_file(tmp_path, create):
    """No manifest names a shard that is missing, and the same command gives the same result."""
    old, new, folder = (tmp_path / name for name in ("old", "new", "folder"))
    create(old, seed=1)
    create(new, seed=2)
    expected, seen, kills = contents(new), [], 0

    def prepare():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(old, folder)

    for _ in crash_points(prepare, lambda: create(folder, seed=2)):
        kills += 1
        if (folder / "manifest.json").exists():
            seen.append(record_folder.verify_records(str(folder), full=True)["seed"])
        create(folder, seed=2)
        assert contents(folder) == expected
    # Some points before the old manifest goes, many without one, two after the new one is there.
    assert len(expected) >= 6 and kills > 3 * len(expected)
    assert seen == sorted(seen) and set(seen) == {1, 2} and len(seen) < kills - len(expected)


def test_a_rename_that_copies_may_be_killed_in_the_middle(tmp_path, create):
    """On gs:// a manifest may be there under both names: the new data are not taken for old."""
    create(tmp_path / "a", seed=1)
    expected = contents(tmp_path / "a")
    partial = tmp_path / "a" / ".partial"
    partial.mkdir()
    shutil.copy(tmp_path / "a" / "manifest.json", partial)
    record_folder.complete_commit(str(tmp_path / "a"))
    assert contents(tmp_path / "a") == expected
