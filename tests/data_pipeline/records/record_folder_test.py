"""Folders of records are complete or absent; every kind of damage is named."""

import collections
import hashlib
import os
import shutil
from pathlib import Path

import pytest
import tensorflow as tf

from data_pipeline.errors import UserError
from data_pipeline.files import storage
from data_pipeline.records import example_bytes, record_folder
from tests.data_pipeline.conftest import records_of


def prepare(folder, count=100, shards=3):
    """Makes the files of a folder; its manifest."""
    partial = Path(record_folder.partial_dir(str(folder)))
    partial.mkdir(parents=True)
    files = []
    for shard in range(shards):
        numbers = range(shard, count, shards)
        content = b"".join(example_bytes.frame(b"%d" % i) for i in numbers)
        name = f"test-{shard:05d}-of-{shards:05d}.tfrecord"
        (partial / name).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        entry = {"name": name, "num_records": len(numbers), "bytes": len(content)}
        files.append({**entry, "sha256": digest})
    return {"note": 1, "num_records": count, "files": files}


def write(folder, count=100, shards=3):
    return record_folder.commit(str(folder), prepare(folder, count, shards), {"extra.txt": b"x"})


def read(folder):
    return [int(record) for record in records_of(folder).as_numpy_iterator()]


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_files_and_manifest_get_there_together(tmp_path):
    manifest = prepare(tmp_path / "a")
    assert names(tmp_path / "a") == [".partial"]
    with pytest.raises(UserError, match=r"holds no manifest.json"):
        record_folder.read_manifest(str(tmp_path / "a"))
    manifest = record_folder.commit(str(tmp_path / "a"), manifest, {"extra.txt": b"x"})
    assert sorted(read(tmp_path / "a")) == list(range(100))
    shards = [file["name"] for file in manifest["files"]]
    assert names(tmp_path / "a") == ["extra.txt", "manifest.json", *shards]
    assert record_folder.read_manifest(str(tmp_path / "a"))["note"] == 1
    assert record_folder.verify_records(str(tmp_path / "a" / "*"))["num_records"] == 100


def test_overwriting_is_asked_for_and_complete(tmp_path):
    write(tmp_path / "a")
    with pytest.raises(UserError, match="--overwrite"):
        record_folder.check_output_dir(str(tmp_path / "a"), overwrite=False)
    record_folder.check_output_dir(str(tmp_path / "a"), overwrite=True)
    write(tmp_path / "a", count=5, shards=2)
    assert sorted(read(tmp_path / "a")) == list(range(5))
    assert sum(name.endswith(".tfrecord") for name in names(tmp_path / "a")) == 2


@pytest.mark.parametrize("renames", range(6))
def test_a_commit_may_be_interrupted_anywhere(tmp_path, monkeypatch, renames):
    """After any number of renames: readers see no data, and the commit can be completed."""
    folder = tmp_path / "a"
    write(folder, count=50)
    manifest = prepare(folder)
    done, rename = [], storage.rename

    def failing(old, new):
        if ".partial/" in old and ".partial/" not in new:
            if len(done) == renames:
                raise KeyboardInterrupt
            done.append(new)
        rename(old, new)

    monkeypatch.setattr(record_folder, "_COMMIT_THREADS", 1)
    monkeypatch.setattr(storage, "rename", failing)
    if renames < 5:  # Three shards, one extra file, the manifest.
        with pytest.raises(KeyboardInterrupt):
            record_folder.commit(str(folder), manifest, {"extra.txt": b"x"})
        with pytest.raises(UserError, match="holds no manifest"):
            record_folder.read_manifest(str(folder))
        monkeypatch.setattr(storage, "rename", rename)
        assert record_folder.complete_commit(str(folder))["num_records"] == 100
    else:
        record_folder.commit(str(folder), manifest, {"extra.txt": b"x"})
    assert sorted(read(folder)) == list(range(100))
    assert record_folder.complete_commit(str(folder)) is None and ".partial" not in names(folder)


@pytest.mark.parametrize("change", ["other", "missing"])
def test_only_what_was_written_is_published(tmp_path, change):
    """Another writer's shard of the same name and size, or none: what was there before stays."""
    folder = tmp_path / "a"
    write(folder, count=50)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    manifest = prepare(folder)
    path = folder / ".partial" / manifest["files"][1]["name"]
    if change == "other":
        flip(path)
    else:
        path.unlink()
    with pytest.raises(UserError, match="a file there differs from what was just written"):
        record_folder.commit(str(folder), manifest, {"extra.txt": b"x"})
    assert not path.exists() and record_folder.complete_commit(str(folder)) is None
    assert names(folder) == sorted({*before, ".partial"})
    assert all((folder / name).read_bytes() == content for name, content in before.items())


@pytest.fixture
def damaged(tmp_path):
    """Makes a folder, lets a function damage its second shard, returns the folder."""

    def make(damage):
        folder = tmp_path / "data"
        manifest = write(folder)
        damage(folder / manifest["files"][1]["name"])
        return str(folder)

    return make


def flip(path: Path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda path: path.unlink(), "00001-of-00003.tfrecord is missing"),
        (lambda path: path.write_bytes(b""), "00001-of-00003.tfrecord.*holds 0"),
        (lambda path: path.write_bytes(path.read_bytes()[:-3]), "00001-of-.*cut short"),
        (flip, "00001-of-00003.tfrecord is damaged"),
    ],
)
def test_damage_is_named(damaged, damage, message):
    with pytest.raises(UserError, match=message):
        record_folder.verify_records(damaged(damage))


def test_hundreds_of_shards_are_listed_once(tmp_path, monkeypatch):
    """No file is asked for by itself, and a missing or short one is found all the same."""
    folder = tmp_path / "a"
    monkeypatch.setattr(record_folder.atomic_files.os, "fsync", lambda file: None)
    manifest = write(folder, count=600, shards=300)
    calls = collections.Counter()

    def counted(name, function):
        def call(*arguments):
            calls[name] += 1
            return function(*arguments)

        return call

    for name in ("exists", "size", "sizes_in"):
        monkeypatch.setattr(storage, name, counted(name, getattr(storage, name)))
    monkeypatch.setattr(storage.os, "scandir", counted("scandir", os.scandir))
    monkeypatch.setattr(record_folder, "FULL_CHECK_BYTES", 0)
    assert record_folder.verify_records(str(folder))["num_records"] == 600
    assert calls.pop("exists") < 5 and calls == {"sizes_in": 1, "scandir": 1}
    path = folder / manifest["files"][123]["name"]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match="00123-of-00300.tfrecord.*cut short"):
        record_folder.verify_records(str(folder))
    path.unlink()
    with pytest.raises(UserError, match="00123-of-00300.tfrecord is missing"):
        record_folder.verify_records(str(folder))


def test_read_errors_are_explained(damaged):
    folder = damaged(flip)
    with pytest.raises(tf.errors.DataLossError) as caught:
        read(folder)
    assert "00001-of-00003.tfrecord" in str(record_folder.explain_read_error(folder, caught.value))
    write(Path(folder))
    assert "cannot be read" in str(record_folder.explain_read_error(folder, caught.value))


def test_what_is_no_folder_of_records_is_refused(tmp_path):
    with pytest.raises(UserError, match="none does not exist"):
        record_folder.read_manifest(str(tmp_path / "none"))
    for content, message in (("{", "JSON"), ("[]", "JSON object"), ('{"kind": "x"}', "'x'")):
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(UserError, match=message):
            record_folder.read_manifest(str(tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file"):
        record_folder.check_output_dir(str(tmp_path / "file"), overwrite=True)


def test_a_copied_folder_is_still_data(tmp_path):
    write(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert read(tmp_path / "b") == read(tmp_path / "a")


def test_the_last_file_holds_the_rest(tmp_path):
    records = [bytes([number]) * number for number in range(7)]
    entries = list(
        record_folder.write_shards(map(example_bytes.frame, records), str(tmp_path), "some", 3)
    )
    assert [entry["num_records"] for entry in entries] == [3, 3, 1]
    paths = [tmp_path / f"some-0000{number}.tfrecord" for number in range(3)]
    assert sorted(tmp_path.iterdir()) == paths
    for entry, path in zip(entries, paths):
        content = path.read_bytes()
        assert (entry["name"], entry["bytes"]) == (path.name, len(content))
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()
    found = tf.data.TFRecordDataset([str(path) for path in paths])
    assert list(found.as_numpy_iterator()) == records


def test_full_files_and_none(tmp_path):
    frames = [example_bytes.frame(b"x")] * 4
    entries = record_folder.write_shards(iter(frames), str(tmp_path), "some", 2)
    assert [entry["num_records"] for entry in entries] == [2, 2]
    assert list(record_folder.write_shards(iter([]), str(tmp_path / "other"), "some", 2)) == []
