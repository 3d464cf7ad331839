"""Rows that went through records make the batches that they made before, bit for bit."""

import json

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.errors import UserError
from data_pipeline.finetuning import feature_records
from data_pipeline.finetuning.batches import Features, finetuning_dataset
from data_pipeline.finetuning.feature_records import columns_of, read_features, write_features
from data_pipeline.records import record_folder
from data_pipeline.records.features import parse

LONGEST = 40


def made_up(shape=(), lengths=None, num_rows=50) -> Features:
    """Rows of 1 to 40 pieces, of integers up to 30,000 and of numbers; padded with 7 and with 0."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, LONGEST + 1, num_rows) if lengths is None else np.array(lengths)
    ids = rng.integers(0, 30_000, (len(lengths), *shape, LONGEST)).astype(np.int32)
    weights = rng.random(ids.shape).astype(np.float32)

    def inputs(rows, length):
        padding = np.arange(length) >= lengths[rows].reshape(-1, *[1] * (ids.ndim - 1))
        return {
            "ids": np.where(padding, np.int32(7), ids[rows][..., :length]),
            "weights": np.where(padding, np.float32(0), weights[rows][..., :length]),
        }

    targets = {"label_values": rng.normal(size=len(lengths)).astype(np.float32)}
    targets["label_ids"] = rng.integers(0, 3, len(lengths)).astype(np.int32)
    return Features([], inputs, lengths, LONGEST, targets, {})


def stored(features: Features, folder) -> Features:
    with record_folder.making(str(folder)) as partial:
        manifest = write_features(features, partial, "some")
    record_folder.commit(str(folder), manifest, {}, record_folder.FINETUNING)
    return read_features(record_folder.verify_records(str(folder), kind=record_folder.FINETUNING))


@pytest.mark.parametrize("shape", [(), (4,)])
@pytest.mark.parametrize("options", [{}, {"static_shapes": True}, {"training": False}])
def test_batches_are_equal(tmp_path, monkeypatch, shape, options):
    """In several files, and made of several parts each."""
    monkeypatch.setattr(feature_records, "_AT_ONCE", 8)
    monkeypatch.setattr(feature_records, "_RECORDS_PER_FILE", 20)
    features = made_up(shape)
    again = stored(features, tmp_path / "records")
    assert len(list((tmp_path / "records").glob("some-*.tfrecord"))) == 3
    assert len(again) == len(features) == 50
    np.testing.assert_array_equal(again.lengths, features.lengths)
    datasets = [finetuning_dataset(found, 8, seed=3, **options) for found in (features, again)]
    # Into a second epoch.
    batches = [list(dataset.take(9).as_numpy_iterator()) for dataset in datasets]
    assert len(batches[0]) == len(batches[1]) >= 7
    for expected, found in zip(*batches):
        assert list(found) == list(expected)
        for name, values in expected.items():
            assert found[name].dtype == values.dtype
            np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_a_record_has_no_padding(tmp_path):
    features = made_up(lengths=[2, 5])
    stored(features, tmp_path / "records")
    manifest = json.loads((tmp_path / "records" / "manifest.json").read_text())
    assert manifest["columns"][0] == {"name": "ids", "dtype": "int32", "shape": [], "fill": 7}
    (path,) = (tmp_path / "records").glob("*.tfrecord")
    schema = [column.feature for column in columns_of(features)]
    records = tf.data.TFRecordDataset(str(path)).batch(2)
    found = parse(schema, next(iter(records)))
    expected = features.batch(np.arange(2), 5)
    assert found["ids"].to_list() == [expected["ids"][0, :2].tolist(), expected["ids"][1].tolist()]
    assert set(found) == {"ids", "weights", "label_values", "label_ids"}


def test_rows_that_are_all_full(tmp_path):
    features = made_up(lengths=[LONGEST] * 3)
    again = stored(features, tmp_path / "records")
    rows = np.array([2, 0])
    for name, values in features.batch(rows, LONGEST).items():
        np.testing.assert_array_equal(again.batch(rows, LONGEST)[name], values, err_msg=name)


def test_damage_is_named(tmp_path):
    folder = tmp_path / "records"
    stored(made_up(), folder)
    manifest = record_folder.verify_records(str(folder), kind=record_folder.FINETUNING)
    (path,) = folder.glob("*.tfrecord")
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"some-00000.tfrecord is damaged"):
        read_features(manifest)
    content[100] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match="should have 51 records but has 50"):
        read_features({**manifest, "num_records": 51})
