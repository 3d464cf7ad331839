"""Shards are shuffled, complete or absent; every kind of damage is named."""

import json
import shutil
from pathlib import Path

import pytest
import tensorflow as tf

from data_pipeline import records
from data_pipeline.errors import UserError


def write(folder, count=100, shards=3, overwrite=False, fail=False, seed=0):
    with records.RecordWriter(str(folder), shards, "test", seed, overwrite) as writer:
        for i in range(count):
            writer.write(i % shards, b"%d" % i)
        if fail:
            raise RuntimeError("stopped half-way")
        return writer.finish({"note": 1}, {"extra.txt": b"x"})


def read(folder):
    return [
        int(r)
        for r in tf.data.TFRecordDataset(records.record_files(str(folder))).as_numpy_iterator()
    ]


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_every_record_is_there_in_random_order(tmp_path):
    manifest = write(tmp_path / "a")
    found = read(tmp_path / "a")
    assert sorted(found) == list(range(100)) and found != sorted(found)
    first_shard = found[: manifest["files"][0]["num_records"]]
    assert sorted(first_shard) == list(range(0, 100, 3)) and first_shard != sorted(first_shard)
    assert names(tmp_path / "a") == [
        "extra.txt",
        "manifest.json",
        *(f["name"] for f in manifest["files"]),
    ]
    assert records.read_manifest(str(tmp_path / "a"))["note"] == 1
    assert records.verify_records(str(tmp_path / "a" / "*"))["num_records"] == 100


def test_bytes_are_a_function_of_content_and_seed(tmp_path):
    first, again = write(tmp_path / "a"), write(tmp_path / "b")
    other = write(tmp_path / "c", seed=1)
    assert first == again and first["files"] != other["files"]


def test_failure_leaves_nothing_a_reader_would_accept(tmp_path):
    with pytest.raises(RuntimeError):
        write(tmp_path / "a", fail=True)
    assert names(tmp_path) == []
    (tmp_path / "mine").mkdir()
    with pytest.raises(RuntimeError):
        write(tmp_path / "mine", fail=True)
    assert names(tmp_path / "mine") == []
    with pytest.raises(UserError, match=r"holds no manifest.json"):
        records.read_manifest(str(tmp_path / "mine"))


def test_failure_keeps_older_data(tmp_path):
    write(tmp_path / "a")
    before = read(tmp_path / "a")
    with pytest.raises(RuntimeError):
        write(tmp_path / "a", overwrite=True, fail=True, count=7)
    assert read(tmp_path / "a") == before and ".partial" not in names(tmp_path / "a")


def test_overwriting_is_asked_for_and_complete(tmp_path):
    write(tmp_path / "a")
    with pytest.raises(UserError, match="--overwrite"):
        write(tmp_path / "a")
    write(tmp_path / "a", count=5, shards=2, overwrite=True)
    assert sorted(read(tmp_path / "a")) == list(range(5))
    assert sum(name.endswith(".tfrecord") for name in names(tmp_path / "a")) == 2


def test_leftovers_of_a_killed_run_do_no_harm(tmp_path):
    (tmp_path / "a" / ".partial").mkdir(parents=True)
    (tmp_path / "a" / ".partial" / "test-00000-of-00009.tfrecord").write_bytes(b"half")
    write(tmp_path / "a")
    assert len(read(tmp_path / "a")) == 100 and ".partial" not in names(tmp_path / "a")


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
        (
            lambda path: path.write_bytes(path.read_bytes()[:-3]),
            "00001-of-00003.tfrecord.*cut short",
        ),
        (flip, "00001-of-00003.tfrecord is damaged"),
    ],
)
def test_damage_is_named(damaged, damage, message):
    with pytest.raises(UserError, match=message):
        records.verify_records(damaged(damage))


def test_read_errors_are_explained(damaged):
    folder = damaged(flip)
    with pytest.raises(tf.errors.DataLossError) as caught:
        read(folder)
    assert "00001-of-00003.tfrecord" in str(records.explain_read_error(folder, caught.value))
    write(Path(folder), overwrite=True)
    assert "cannot be read" in str(records.explain_read_error(folder, caught.value))


def test_what_is_no_folder_of_records_is_refused(tmp_path):
    with pytest.raises(UserError, match="none does not exist"):
        records.read_manifest(str(tmp_path / "none"))
    for content, message in [("{", "JSON"), ("[]", "None"), (json.dumps({"kind": "x"}), "'x'")]:
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(UserError, match=message):
            records.read_manifest(str(tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file"):
        records.check_output_dir(str(tmp_path / "file"), overwrite=True)
    with pytest.raises(UserError, match="--num_shards"):
        records.RecordWriter(str(tmp_path / "x"), 0, "test", 0)


def test_a_copied_folder_is_still_data(tmp_path):
    write(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert read(tmp_path / "b") == read(tmp_path / "a")


def test_frames_refuse_cut_content():
    with pytest.raises(ValueError, match="cut off at byte 0"):
        list(records.frames(b"\1" * 5))
