"""Any dataset of the schema becomes a folder of records; the program's own give its bytes again."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.corpus.documents import Corpus
from data_pipeline.errors import UserError
from data_pipeline.pretraining.creation import create_pretraining_data
from data_pipeline.pretraining.dataset import pretraining_dataset
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.writer import write_records
from data_pipeline.records import features, record_folder
from tests.data_pipeline.conftest import records_of

STATIC = PretrainingSettings(max_seq_length=64, dupe_factor=1, masking="static")
CHUNKS = PretrainingSettings(max_seq_length=64, segments="dynamic")
DYNAMIC = PretrainingSettings(max_seq_length=64, dupe_factor=1, masking="dynamic")
SMALL = PretrainingSettings(max_seq_length=8, max_predictions_per_seq=2, masking="dynamic")


@pytest.mark.parametrize(
    "settings", [STATIC, CHUNKS, pytest.param(DYNAMIC, marks=pytest.mark.table)]
)
def test_records_of_the_program_come_out_as_they_went_in(tmp_path, small_file, tokenizer, settings):
    """Their bytes, and the statistics of the manifest; the files are others."""
    source = create_pretraining_data(
        Corpus(small_file), str(tmp_path / "a"), tokenizer, settings, num_processes=1, shard_mb=0.05
    )
    serialized = records_of(tmp_path / "a")
    schema = features.schema_of(source)
    examples = serialized.map(lambda record: features.parse(schema, record))
    folder = str(tmp_path / "b")
    written = write_records(examples, folder, tokenizer, settings, records_per_file=100)
    assert list(records_of(folder).as_numpy_iterator()) == list(serialized.as_numpy_iterator())
    assert [file["num_records"] for file in written["files"]][:-1] == [100] * (
        (source["num_records"] - 1) // 100
    )
    manifest = record_folder.verify_records(folder, full=True)
    same = set(manifest) - {"files", "num_shards", "corpus", "fingerprint", "directory"}
    assert {name: manifest[name] for name in same - {"settings", "statistics"}} == {
        name: source[name] for name in same - {"settings", "statistics"}
    }
    statistics = {name: source["statistics"][name] for name in source["statistics"]}
    assert manifest["statistics"] == {
        **statistics,
        "skipped": {},
        "label_balance": pytest.approx(statistics["label_balance"], abs=0.01),
        "majority_order_accuracy": pytest.approx(statistics["majority_order_accuracy"], abs=0.01),
    }
    counts = [(tmp_path / name / "label_counts.json").read_bytes() for name in "ab"]
    assert counts[0] == counts[1]
    batches = [pretraining_dataset(str(tmp_path / name), 32, training=False) for name in "ab"]
    first, second = (next(batch.as_numpy_iterator()) for batch in batches)
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name)


def example(**changes):
    """A dynamic example in a few columns of many kinds."""
    return {
        "token_ids": np.array([20, 21, 22], np.int16),
        "token_boundary": np.array([True, False, True]),
        "num_tokens_a": np.int64(2),
        "next_sentence_labels": np.array([0], np.uint8),
        **changes,
    }


def dataset_of(*rows):
    spec = {
        name: tf.TensorSpec([None] * min(1, np.ndim(value)), np.asarray(value).dtype)
        for name, value in rows[0].items()
    }
    return tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=spec)


def test_lengths_may_vary_or_be_padded(tmp_path, tokenizer):
    longer = example(token_ids=np.array([9, 8, 7, 6], np.int16), token_boundary=np.ones(4, bool))
    padded = example(
        token_ids=np.array([20, 21, 22, 0, 0], np.int16),
        token_boundary=np.array([True, False, True, False, False]),
    )
    for name, rows in (("ragged", [example(), longer]), ("padded", [padded, longer])):
        manifest = write_records(dataset_of(*rows), str(tmp_path / name), tokenizer, SMALL)
        assert manifest["statistics"]["tokens"] == 3 + 4 + 2 * 3
    contents = [
        (tmp_path / name / "pretraining-00000.tfrecord").read_bytes()
        for name in ("ragged", "padded")
    ]
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    "rows, says",
    [
        ([example(token_ids=np.array([1, 2, 2500]))], "Example 1: token_ids has 2500.*to 2499"),
        ([example(), example(num_tokens_a=np.int64(-1))], "Example 2: num_tokens_a has -1"),
        ([example(), example(token_ids=np.array([20, 0, 22], np.int16))], "Example 2.*only by ze"),
        ([example(num_tokens_a=np.int64(0))], "num_tokens_a is 0, but should be 1 to 3"),
        ([example(), example(num_tokens_a=np.int64(4))], "Example 2: num_tokens_a is 4"),
        ([example(token_boundary=np.array([True]))], "one value for each token"),
        ([example(token_ids=np.arange(1, 7), token_boundary=np.ones(6, bool))], "1 to 5 .*has 6"),
        ([{"text": np.array([1])}], "missing: next_sentence_labels.*unknown: text"),
        ([example(num_tokens_a=np.float32(2))], "num_tokens_a should hold int64"),
        ([example(num_tokens_a=np.array([[2]]))], "num_tokens_a should hold int64"),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing(tmp_path, tokenizer, rows, says):
    data = dataset_of(*rows)
    if np.ndim(rows[0].get("num_tokens_a", 0)) == 2:
        data = data.map(lambda row: {**row, "num_tokens_a": tf.ones([1, 1], tf.int32)})
    with pytest.raises(UserError, match=f"(?s){says}"):
        write_records(data, str(tmp_path / "a"), tokenizer, SMALL)
    assert not (tmp_path / "a").exists()


def test_a_schedule_of_masks_is_not_for_records(tmp_path, small_file, tokenizer):
    settings = dataclasses.replace(SMALL, mask_schedule="0.3@0,0.2@9")
    folder, dataset = str(tmp_path / "records"), tf.data.Dataset.range(1)
    for write in (
        lambda: create_pretraining_data(Corpus(small_file), folder, tokenizer, settings),
        lambda: write_records(dataset, folder, tokenizer, settings),
    ):
        with pytest.raises(UserError, match="^--mask_schedule=0.3@0,0.2@9 is for run_pretraining"):
            write()
    assert not list(tmp_path.iterdir())


def test_existing_data_are_kept_unless_told(tmp_path, tokenizer):
    folder = str(tmp_path / "a")
    first = write_records(dataset_of(example()), folder, tokenizer, SMALL)
    with pytest.raises(UserError, match="--overwrite"):
        write_records(dataset_of(example()), folder, tokenizer, SMALL)
    with pytest.raises(UserError, match="holds no example"):
        write_records(dataset_of(example()).take(0), folder, tokenizer, SMALL, overwrite=True)
    assert record_folder.verify_records(folder, full=True)["files"] == first["files"]
    data, options = dataset_of(example()).repeat(3), {"overwrite": True, "records_per_file": 1}
    assert write_records(data, folder, tokenizer, SMALL, **options)["num_records"] == 3
    assert record_folder.verify_records(folder, full=True)["num_shards"] == 3
    assert not (Path(folder) / ".partial").exists()


def test_an_interruption_leaves_no_data(tmp_path, tokenizer):
    def rows():
        yield from itertools.repeat(example(), 2000)
        raise KeyboardInterrupt

    spec = dataset_of(example()).element_spec
    data = tf.data.Dataset.from_generator(rows, output_signature=spec)
    with pytest.raises((KeyboardInterrupt, tf.errors.OpError)):
        write_records(data, str(tmp_path / "a"), tokenizer, SMALL, records_per_file=512)
    assert not (tmp_path / "a").exists()
    settings = dataclasses.replace(SMALL, seed=9)
    manifest = write_records(dataset_of(example()), str(tmp_path / "a"), tokenizer, settings)
    assert manifest["seed"] == 9


def test_without_pairs_the_first_segment_is_all(tmp_path, tokenizer):
    settings = dataclasses.replace(SMALL, sentence_objective="none")
    write_records(
        dataset_of(example(num_tokens_a=np.int64(3))), str(tmp_path / "a"), tokenizer, settings
    )
    with pytest.raises(UserError, match="Example 1: num_tokens_a is 2, but should be 3"):
        write_records(dataset_of(example()), str(tmp_path / "b"), tokenizer, settings)


def test_nan_is_no_weight(tmp_path, small_file, tokenizer):
    source = create_pretraining_data(Corpus(small_file), str(tmp_path / "a"), tokenizer, STATIC)
    schema = features.schema_of(source)
    examples = records_of(tmp_path / "a").take(1)
    examples = examples.map(lambda record: features.parse(schema, record))
    examples = examples.map(
        lambda row: {**row, "masked_lm_weights": row["masked_lm_weights"] * float("nan")}
    )
    with pytest.raises(UserError, match="Example 1: masked_lm_weights has nan"):
        write_records(examples, str(tmp_path / "b"), tokenizer, STATIC)
