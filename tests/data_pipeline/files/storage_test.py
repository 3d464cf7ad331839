"""A disk and TensorFlow's file systems look alike; the disk needs no TensorFlow."""

import threading
from pathlib import Path

import pytest
import tensorflow as tf

from data_pipeline.corpus.documents import Corpus
from data_pipeline.errors import UserError
from data_pipeline.files import storage
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.records import record_folder
from tests.data_pipeline.conftest import records_of


@pytest.fixture(params=["disk", "ram"])
def folder(request, tmp_path):
    """A folder on the disk, and one in TensorFlow's file system in memory."""
    path = str(tmp_path / "a") if request.param == "disk" else f"ram://{tmp_path.name}/a"
    storage.make_folder(path)
    storage.make_folder(path)
    return path


def write(path, content):
    with storage.open_file(path, "wb") as file:
        file.write(content)


def test_files(folder):
    assert storage.is_folder(folder) and storage.names_in(folder) == []
    write(f"{folder}/b.txt", b"12")
    write(f"{folder}/c.txt", b"345")
    assert storage.exists(f"{folder}/b.txt") and not storage.is_folder(f"{folder}/b.txt")
    assert storage.size(f"{folder}/c.txt") == 3
    assert storage.names_in(folder) == ["b.txt", "c.txt"]
    assert storage.match(f"{folder}/*.txt") == [f"{folder}/b.txt", f"{folder}/c.txt"]
    names = ["c.txt", "d.txt", "b.txt"]
    assert storage.sizes_in(folder, names) == {"c.txt": 3, "b.txt": 2}
    storage.rename(f"{folder}/b.txt", f"{folder}/c.txt")
    assert storage.read_bytes(f"{folder}/c.txt") == b"12"
    assert storage.names_in(folder) == ["c.txt"]
    storage.remove(f"{folder}/c.txt")
    storage.remove(f"{folder}/c.txt")
    assert not storage.exists(f"{folder}/c.txt")
    storage.make_folder(f"{folder}/d")
    write(f"{folder}/d/e", b"")
    storage.remove_folder(f"{folder}/d")
    storage.remove_folder(f"{folder}/d")
    assert not storage.exists(f"{folder}/d/e") and storage.names_in(f"{folder}/none") == []


def test_sizes_are_asked_for_side_by_side(tmp_path, monkeypatch):
    """Where each answer takes a while."""
    folder = f"ram://{tmp_path.name}/many"
    names = [f"{number}" for number in range(20)]
    for name in names:
        write(f"{folder}/{name}", name.encode())
    together, size = threading.Barrier(len(names), timeout=60), storage.size

    def waiting(path):
        together.wait()
        return size(path)

    monkeypatch.setattr(storage, "size", waiting)
    assert storage.sizes_in(folder, names) == {name: len(name) for name in names}


def test_records_are_made_anywhere(tmp_path, small_file, tokenizer):
    """Corpus and records on a remote file system; the bytes are those on a disk."""
    folder = f"ram://{tmp_path.name}/b"
    storage.make_folder(folder)
    write(f"{folder}/text.txt", Path(small_file).read_bytes())
    settings = PretrainingSettings(max_seq_length=64, dupe_factor=1)
    for output in (f"{folder}/records", str(tmp_path / "local")):
        manifest = create_pretraining_data(
            Corpus(f"{folder}/*.txt"), output, tokenizer, settings, shard_mb=0.02
        )
        found = record_folder.verify_records(output, full=True)
        assert found["num_records"] == manifest["num_records"]
    for path in record_folder.record_files(record_folder.read_manifest(str(tmp_path / "local"))):
        assert Path(path).read_bytes() == storage.read_bytes(f"{folder}/records/{Path(path).name}")
    assert len(list(records_of(f"{folder}/records"))) == manifest["num_records"]


def test_what_has_the_name_of_a_pattern_is_meant(tmp_path):
    for name in ("a[1]", "a1"):
        (tmp_path / name).mkdir()
        for file in ("x[1].txt", "x1.txt", "y.txt"):
            (tmp_path / name / file).touch()
    folder = str(tmp_path / "a[1]")
    assert storage.match(f"{folder}/x[1].txt") == [f"{folder}/x[1].txt"]
    assert storage.match(f"{folder}/x*.txt") == [f"{folder}/x1.txt", f"{folder}/x[1].txt"]
    assert storage.match(f"{folder}/[yz].txt") == [f"{folder}/y.txt"]
    assert len(storage.match(f"{tmp_path}/a*/y.txt")) == 2
    everywhere = [f"{tmp_path}/{name}/y.txt" for name in ("a1", "a[1]")]
    assert storage.match(f"{tmp_path}/**/y.txt") == everywhere
    with pytest.raises(UserError, match="works only for local files"):
        storage.match("gs://bucket/**/y.txt")
    assert storage.match(f"{folder}/z") == storage.match(f"{tmp_path}/no/[1]*.txt") == []


def test_storage_that_does_not_answer(monkeypatch):
    answer = threading.Event()
    monkeypatch.setattr(tf.io.gfile, "exists", lambda path: answer.wait(60))
    monkeypatch.setattr(storage, "_PATIENCE", 0.01)
    with pytest.raises(UserError, match="has not answered for 0.01 seconds. Check the network"):
        storage.check_reachable("gs://bucket/x")
    answer.set()
    storage.check_reachable("gs://bucket/x")
