"""Records of google-research/albert and of the Model Garden are read here, and ours there."""

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.adopt_records import adopt_records
from data_pipeline.errors import UserError
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.pretraining.statistics import pretraining_baselines, summary_table
from data_pipeline.records import record_folder

LENGTH, PREDICTIONS = 16, 3


def write_theirs(path, count=40, **changes):
    """Records as the Model Garden's program writes them: no token_boundary."""
    rng = np.random.default_rng(0)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for i in range(count):
            size = int(rng.integers(8, LENGTH + 1))
            columns = {
                "input_ids": [2, *rng.integers(5, 100, size - 2), 3] + [0] * (LENGTH - size),
                "input_mask": [1] * size + [0] * (LENGTH - size),
                "segment_ids": [0] * LENGTH,
                "masked_lm_positions": [1, 3, 0],
                "masked_lm_ids": [7, 9, 0],
                "next_sentence_labels": [i % 2],
                **changes,
            }
            feature = {
                name: tf.train.Feature(int64_list=tf.train.Int64List(value=values))
                for name, values in columns.items()
            }
            weights = tf.train.FloatList(value=[1.0, 1.0, 0.0])
            feature["masked_lm_weights"] = tf.train.Feature(float_list=weights)
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())


def test_their_records_are_read_here(tmp_path, tokenizer):
    for name in ("a.tf_record", "b.tfrecord-00000-of-00001"):
        write_theirs(tmp_path / name)
    manifest = adopt_records(str(tmp_path), tokenizer)
    assert manifest["num_records"] == 80 and manifest["statistics"]["label_balance"] == 0.5
    assert manifest["statistics"]["predictions"] == 160
    batches = list(pretraining_dataset(str(tmp_path), 32, training=False))
    assert sum(batch["example_weights"].numpy().sum() for batch in batches) == 80
    assert batches[0]["masked_lm_ids"].numpy()[0].tolist() == [7, 9, 0]
    next(iter(pretraining_dataset(str(tmp_path), 32)))
    assert "80 in 2 files" in summary_table(manifest)
    found = record_folder.read_manifest(str(tmp_path))
    assert pretraining_baselines(found, found)["masked_lm_accuracy"][0] == 0.5
    with pytest.raises(UserError, match="already has a manifest.json, so"):
        adopt_records(str(tmp_path), tokenizer)


def test_what_is_something_else_is_refused(tmp_path, tokenizer):
    def refused(message):
        with pytest.raises(UserError, match=message):
            adopt_records(str(tmp_path), tokenizer)

    (tmp_path / "tfrecords_old").mkdir()
    refused("holds no file named like")
    path = tmp_path / "a.tfrecord"
    write_theirs(path, input_ids=[99_999] * LENGTH)
    refused("holds the id 99999, but --vocab_file has 2500 pieces")
    write_theirs(path, segment_ids=[0] * 3)
    refused("TFRecords of equal length")
    path.write_bytes(b"no records at all")
    refused("uncompressed TFRecords")
    path.write_bytes(b"")
    refused("holds no record")
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(tf.train.Example().SerializeToString())
    refused("lacks the columns input_ids.*use_v2_feature_names")
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"\xff\xd8\xff\xe0 a picture")
    refused("contains no tf.train.Examples")
    assert not (tmp_path / "manifest.json").exists()
