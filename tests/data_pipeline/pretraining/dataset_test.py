"""Every record comes once per epoch, in an order that (seed, epoch) decides and steps resume."""

import collections
import hashlib
import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.corpus.documents import Corpus
from data_pipeline.errors import UserError
from data_pipeline.pretraining import dataset as datasets
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.records import features, record_folder
from data_pipeline.records import order as record_order
from tests.data_pipeline.conftest import rows

BATCH = 32


def row_keys(batch):
    """A name for each row, made of its content."""
    ids, positions = batch["input_word_ids"].numpy(), batch["masked_lm_positions"].numpy()
    weights = batch["example_weights"].numpy()
    return [
        hashlib.md5(i.tobytes() + p.tobytes()).hexdigest()
        for i, p, weight in zip(ids, positions, weights)
        if weight
    ]


def keys(dataset, batches=None):
    dataset = dataset if batches is None else dataset.take(batches)
    return [key for batch in dataset for key in row_keys(batch)]


def training(data, **options):
    return datasets.pretraining_dataset(data, options.pop("batch", BATCH), **options)


@pytest.fixture(scope="module")
def all_keys(records_dir):
    return keys(datasets.pretraining_dataset(records_dir, BATCH, training=False))


@pytest.fixture(scope="module")
def stream(records_dir, all_keys):
    """Three epochs of training with the seed 0."""
    return keys(training(records_dir), batches=3 * len(all_keys) // BATCH + 1)


def test_elements(records_dir, dynamic_dir, tokenizer):
    b, s, p = BATCH, 64, 10
    for data, is_training in itertools.product((records_dir, dynamic_dir), (True, False)):
        as_made = {"vocab_fingerprint": tokenizer.fingerprint, "max_seq_length": 64}
        spec = training(data, training=is_training, **as_made).element_spec
        found = {name: (value.dtype.name, tuple(value.shape)) for name, value in spec.items()}
        assert found == {
            **dict.fromkeys(("input_word_ids", "input_mask", "input_type_ids"), ("int32", (b, s))),
            **dict.fromkeys(("masked_lm_positions", "masked_lm_ids"), ("int32", (b, p))),
            "masked_lm_weights": ("float32", (b, p)),
            "sentence_order_labels": ("int32", (b,)),
            "example_weights": ("float32", (b,)),
        }


def test_evaluation_is_one_padded_pass(records_dir, all_keys):
    count = record_folder.read_manifest(records_dir)["num_records"]
    size = BATCH if count % BATCH else BATCH + 1  # So that the last batch is short.
    batches = list(datasets.pretraining_dataset(records_dir, size, training=False))
    assert len(all_keys) == count and len(batches) == -(-count // size)
    last = batches[-1]["example_weights"].numpy()
    assert last.tolist() == [1.0] * (count % size) + [0.0] * (size - count % size)
    assert all(batch["example_weights"].numpy().all() for batch in batches[:-1])
    assert not batches[-1]["masked_lm_weights"].numpy()[count % size :].any(), "words count, too"
    again = keys(datasets.pretraining_dataset(records_dir, size, training=False))
    assert again == all_keys


def test_each_epoch_holds_every_record_once_in_a_new_order(stream, all_keys):
    count = len(all_keys)
    epochs = [stream[i * count : (i + 1) * count] for i in range(3)]
    for epoch in epochs:
        assert collections.Counter(epoch) == collections.Counter(all_keys)
    assert epochs[0] != epochs[1] and epochs[1] != epochs[2] and epochs[0] != all_keys


def test_order_depends_on_the_seed_only(records_dir, stream):
    tf.random.set_seed(99)
    assert keys(training(records_dir, seed=0), 10) == stream[: 10 * BATCH]
    assert keys(training(records_dir, seed=6), 10) != stream[: 10 * BATCH]


@pytest.mark.parametrize("window", rows([datasets.SHUFFLE_WINDOW, 50], 50))
def test_resuming_goes_on_at_the_batch(records_dir, all_keys, monkeypatch, window):
    monkeypatch.setattr(datasets, "SHUFFLE_WINDOW", window)
    per_epoch = len(all_keys) // BATCH
    stream = keys(training(records_dir), 2 * per_epoch + 8)
    for step in (per_epoch - 1, 2 * per_epoch + 5):
        resumed = keys(training(records_dir, start_step=step), 3)
        assert resumed == stream[step * BATCH : (step + 3) * BATCH]


def test_shuffling_moves_records_far(stream, all_keys):
    """The mean displacement of a random permutation of n is n / 3."""
    count = len(all_keys)
    place = {key: i for i, key in enumerate(all_keys)}
    displacement = np.mean([abs(place[key] - i) for i, key in enumerate(stream[:count])])
    assert displacement > 0.28 * count


def test_batches_larger_than_the_data(records_dir, all_keys):
    stream = keys(training(records_dir, batch=len(all_keys) + 7), 1)
    assert set(stream) == set(all_keys) and len(stream) == len(all_keys) + 7


@pytest.fixture(scope="module")
def dynamic_dir(tmp_path_factory, corpus_file, tokenizer):
    folder = tmp_path_factory.mktemp("dynamic") / "data"
    settings = PretrainingSettings(max_seq_length=64, dupe_factor=1, masking="dynamic")
    create_pretraining_data(Corpus(corpus_file), str(folder), tokenizer, settings, shard_mb=0.25)
    return str(folder)


def test_dynamic_masks_are_new_in_each_epoch_and_resume(dynamic_dir):
    count = record_folder.read_manifest(dynamic_dir)["num_records"]
    per_epoch = count // BATCH
    stream = keys(training(dynamic_dir), 2 * per_epoch)
    assert len(set(stream)) > 0.99 * len(stream), "masks differ from epoch to epoch"
    step = per_epoch + 3
    resumed = keys(training(dynamic_dir, start_step=step), 3)
    assert resumed == stream[step * BATCH : (step + 3) * BATCH]


@pytest.fixture(scope="module", params=rows(["fixed", "dynamic"], "dynamic"))
def few_dir(request, tmp_path_factory, small_file, tokenizer):
    """Some hundred dynamic records, whose segments are fixed or not."""
    folder = tmp_path_factory.mktemp("few") / "data"
    settings = PretrainingSettings(max_seq_length=64, segments=request.param)
    create_pretraining_data(Corpus(small_file), str(folder), tokenizer, settings)
    return str(folder)


def test_dynamic_masks_of_evaluation_stay(few_dir):
    """For every seed and batch size, to the last record."""
    first = keys(training(few_dir, training=False, seed=1, batch=64))
    assert len(first) == record_folder.read_manifest(few_dir)["num_records"] > 200
    assert keys(training(few_dir, training=False, seed=2, batch=7)) == first


def test_records_of_dynamic_segments_hold_all_of_the_text(tmp_path, small_file, tokenizer):
    shares, lengths = {}, {}
    for segments in ("fixed", "dynamic"):
        folder = str(tmp_path / segments)
        settings = PretrainingSettings(max_seq_length=64, segments=segments)
        manifest = create_pretraining_data(Corpus(small_file), folder, tokenizer, settings)
        shares[segments] = manifest["corpus"]["held_share"]
        lengths[segments] = manifest["statistics"]["mean_length"]
    assert shares["fixed"] < 0.95 and shares["dynamic"] > 0.999
    assert abs(lengths["fixed"] - lengths["dynamic"]) < 1  # Of examples, not of records.
    batches = list(training(folder, batch=64).take(10))
    assert max(each["input_mask"].numpy().sum(axis=1).max() for each in batches) == 64
    assert all(each["input_type_ids"].numpy().any(axis=1).all() for each in batches)
    swapped = np.concatenate([each["sentence_order_labels"] for each in batches])
    assert abs(swapped.mean() - 0.5) < 0.1
    resumed = keys(training(folder, start_step=9, batch=64), 1)
    assert resumed == row_keys(batches[-1])


def two_hosts(data, **options):
    """The datasets of two hosts."""
    contexts = [tf.distribute.InputContext(2, host, 2) for host in range(2)]
    return [training(data, input_context=context, **options) for context in contexts]


def test_two_hosts_train_on_the_batches_of_one(few_dir):
    size = 149  # Its halves differ, and share a group of rows that are masked together.
    alone = training(few_dir, start_step=3, batch=size).take(3)
    hosts = two_hosts(few_dir, start_step=3, batch=size)
    for whole, *parts in zip(alone, *hosts):
        assert [len(part["input_mask"]) for part in parts] == [size // 2, size - size // 2]
        for name, values in whole.items():
            together = np.concatenate([part[name] for part in parts])
            np.testing.assert_array_equal(together, values, err_msg=name)


def test_two_hosts_evaluate_each_record_once(few_dir):
    expected = keys(training(few_dir, training=False))
    hosts = [list(dataset) for dataset in two_hosts(few_dir, training=False, batch=7)]
    assert len(hosts[0]) == len(hosts[1])
    found = [key for batches in hosts for batch in batches for key in row_keys(batch)]
    assert collections.Counter(found) == collections.Counter(expected)
    with pytest.raises(UserError, match="2 hosts cannot share batches of 1"):
        two_hosts(few_dir, batch=1)


def test_a_host_parses_and_masks_its_own_rows_only(few_dir, monkeypatch):
    sizes, counted, parse = [], [], features.parse

    def spy(schema, serialized):
        sizes.append(serialized.shape[0])
        count = tf.numpy_function(lambda rows: counted.append(len(rows)), [serialized], [])
        with tf.control_dependencies([count]):
            return parse(schema, tf.identity(serialized))

    monkeypatch.setattr(features, "parse", spy)
    two_hosts(few_dir, batch=256)
    assert set(sizes) == {128}  # Training has no end, but batches of a fixed size.
    num_records = record_folder.read_manifest(few_dir)["num_records"]
    for dataset in two_hosts(few_dir, training=False):
        counted.clear()
        collections.deque(dataset, maxlen=0)
        assert 0.3 * num_records < sum(counted) < 0.7 * num_records + 2 * 64  # And some fillers.


def test_resuming_reads_nothing_that_lies_before(records_dir, tmp_path, monkeypatch):
    """Records that were used may hold anything; without the seek, their checksums are compared."""
    monkeypatch.setattr(datasets, "SHUFFLE_WINDOW", 50)
    monkeypatch.setattr(record_order, "_READ_FILES", 2)
    monkeypatch.setattr(record_folder, "FULL_CHECK_BYTES", 0)
    manifest = record_folder.read_manifest(records_dir)
    step = int(0.9 * manifest["num_records"]) // BATCH
    expected = keys(training(records_dir, start_step=step), 3)
    epoch = datasets._training_records(manifest, manifest["num_records"], 0, seed=0)
    epoch = next(iter(epoch)).numpy().tolist()
    start = step * BATCH // 50 * 50  # Of the window that the step is in.
    used = set(epoch[:start]) - set(epoch[start:])

    folder = shutil.copytree(records_dir, tmp_path / "data")
    for path in map(Path, record_folder.record_files(record_folder.read_manifest(str(folder)))):
        content = bytearray(path.read_bytes())
        for record in used.intersection(tf.data.TFRecordDataset(str(path)).as_numpy_iterator()):
            content[content.index(record) + len(record) // 2] ^= 1
        path.write_bytes(content)
    assert keys(training(str(folder), start_step=step), 3) == expected
    with pytest.raises(tf.errors.DataLossError):
        keys(training(str(folder)), 1)


def test_dynamic_records_need_their_vocabulary(dynamic_dir, tmp_path, records_dir):
    shutil.copytree(dynamic_dir, tmp_path / "a")
    content = (tmp_path / "a" / "spiece.model").read_bytes()
    (tmp_path / "a" / "spiece.model").write_bytes(content + b"\x08\x00")
    with pytest.raises(UserError, match="spiece.model"):
        training(str(tmp_path / "a"))
    (tmp_path / "a" / "spiece.model").unlink()
    with pytest.raises(UserError, match="spiece.model is missing, though"):
        training(str(tmp_path / "a"))


def test_mismatches_are_refused(records_dir):
    manifest = record_folder.read_manifest(records_dir)
    with pytest.raises(UserError, match=f"another vocab.*{manifest['vocab_fingerprint'][:12]}"):
        training(records_dir, vocab_fingerprint="0" * 64)
    with pytest.raises(UserError, match="max_seq_length=64, but 128"):
        training(records_dir, max_seq_length=128)


def test_replicas_share_each_global_batch(records_dir, two_devices, stream):
    batch = next(iter(two_devices.experimental_distribute_dataset(training(records_dir))))
    parts = [two_devices.experimental_local_results(value) for value in batch.values()]
    rows = [dict(zip(batch, replica)) for replica in zip(*parts)]
    assert len(rows) == 2 and all(len(row_keys(row)) == BATCH // 2 for row in rows)
    assert stream[:BATCH] == [key for row in rows for key in row_keys(row)]


@pytest.mark.parametrize("step", rows([1, 90], 90))
def test_the_files_of_a_batch(records_dir, step):
    manifest = record_folder.read_manifest(records_dir)
    schema = features.readable_schema("static", 64, manifest["max_predictions"])
    files_of = {}
    for path in record_folder.record_files(record_folder.read_manifest(records_dir)):
        for batch in tf.data.TFRecordDataset(path).batch(4096):
            columns = features.parse(schema, batch)
            columns["input_word_ids"] = columns["input_ids"]
            columns["example_weights"] = tf.ones([len(batch)])
            files_of.update(dict.fromkeys(row_keys(columns), path.rpartition("/")[2]))
    wanted = keys(training(records_dir, seed=3, start_step=step - 1), 1)
    named = datasets.source_of_batch(records_dir, BATCH, BATCH * (step - 1), seed=3).split(", ")
    assert len(set(files_of.values())) > 1
    assert named == sorted({files_of[key] for key in wanted})
