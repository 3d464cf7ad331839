"""Records fill files one after the other; TensorFlow reads them."""

import hashlib

import tensorflow as tf

from data_pipeline.records.example_bytes import frame
from data_pipeline.records.shards import write_shards


def test_the_last_file_holds_the_rest(tmp_path):
    records = [bytes([number]) * number for number in range(7)]
    entries = list(write_shards(map(frame, records), str(tmp_path), "some", 3))
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
    frames = [frame(b"x")] * 4
    entries = write_shards(iter(frames), str(tmp_path), "some", 2)
    assert [entry["num_records"] for entry in entries] == [2, 2]
    assert list(write_shards(iter([]), str(tmp_path / "other"), "some", 2)) == []
