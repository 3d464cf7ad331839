"""Pre-training data from Python: what a run is told of records and of text."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.pretraining import open_records, open_text, original_words
from albert_tf.pretraining.objectives import with_noise
from data_pipeline.corpus.documents import Corpus
from data_pipeline.errors import UserError
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers.loading import load_tokenizer


def test_records(work):
    data = open_records(str(work / "nsp"), batch_size=8, seed=4)
    assert (data.name, data.batch_size, data.seed) == (str(work / "nsp"), 8, 4)
    assert (data.max_seq_length, data.vocab_size, data.sentence_objective) == (32, 48, "nsp")
    assert data.num_examples > 8 and data.has_statistics
    assert data.vocab_file == str(work / "nsp" / "spiece.model")
    assert data.must_not_change["text"] is None
    batches = [next(iter(data.batches(start_step=step))) for step in (0, 5, 5)]
    ids = [batch["input_word_ids"].numpy() for batch in batches]
    assert ids[0].shape == (8, 32) and not np.array_equal(ids[0], ids[1])
    np.testing.assert_array_equal(ids[1], ids[2])
    assert data.describe_batch(6).endswith(".tfrecord")


def test_damaged_records_are_named(work, tmp_path):
    folder = shutil.copytree(work / "sop", tmp_path / "damaged")
    data = open_records(str(folder), batch_size=8)
    (shard, *_) = folder.glob("*.tfrecord")
    content = shard.read_bytes()
    shard.write_bytes(content[:100] + bytes(byte ^ 255 for byte in content[100:]))
    error = tf.errors.DataLossError(None, None, "corrupted record at 0")
    assert shard.name in str(data.explain(error))
    other = tf.errors.InternalError(None, None, "of something else")
    assert data.explain(other) is other
    with pytest.raises(UserError, match=shard.name):
        open_records(str(folder), batch_size=8)


def test_text(work):
    tokenizer = load_tokenizer(str(work / "vocabulary" / "spiece.model"))
    settings = PretrainingSettings(max_seq_length=32, dupe_factor=1, masking="dynamic")
    corpus = str(work / "corpus.txt")
    data = open_text(Corpus(corpus), tokenizer, settings, batch_size=4, seed=1)
    assert (data.name, data.num_examples, data.has_statistics) == (corpus, None, False)
    assert data.must_not_change["records"] is None and data.must_not_change["ngram"] == 3
    assert data.vocab_file == tokenizer.vocab_file
    batch = next(iter(data.batches(start_step=0)))
    assert batch["input_word_ids"].shape == (4, 32)


def test_a_share_of_recurring_masks_is_the_run_s(work):
    """Of dynamic records: it decides the masks, and a run does not go on with another."""
    own, given = (open_records(str(work / "sop"), 8, 0, share) for share in (None, 1.0))
    shares = [data.must_not_change["recurring_mask_share"] for data in (own, given)]
    assert shares == [0.0, 1.0]
    ids = [
        np.stack([batch["input_word_ids"] for batch in data.batches(start_step=0).take(20)])
        for data in (own, given)
    ]
    assert not np.array_equal(*ids)


def test_a_schedule_of_shares_is_of_the_steps_of_a_run(work):
    """Of records and of text, with the width of the largest share; held-out records keep theirs."""
    tokenizer = load_tokenizer(str(work / "vocabulary" / "spiece.model"))

    def text(**masks):
        settings = PretrainingSettings(max_seq_length=32, **masks)
        return open_text(Corpus(str(work / "corpus.txt")), tokenizer, settings, batch_size=4)

    def records(schedule=None):
        return open_records(str(work / "sop"), 4, mask_schedule=schedule)

    def batches(data, start_step=0):
        some = data.batches(start_step=start_step).take(4 - start_step)
        return [{name: value.numpy() for name, value in batch.items()} for batch in some]

    for own, same, changed in (
        (records(), records("0.15@0"), records("0.15@0,0.4@2")),
        (text(), text(mask_schedule="0.15@0"), text(mask_schedule="0.15@0,0.4@2")),
    ):
        assert (own.must_not_change["mask_schedule"], own.manifest["max_predictions"]) == (None, 5)
        assert changed.must_not_change["mask_schedule"] == "0.15@0,0.4@2"
        assert changed.manifest["max_predictions"] == 13
        whole = batches(changed)
        assert whole[0]["masked_lm_weights"].shape == (4, 13)
        for number, (one, other) in enumerate(zip(batches(own), batches(same), strict=True)):
            for name, value in one.items():
                np.testing.assert_array_equal(value, other[name], err_msg=name)
                if number < 2:  # In more columns.
                    found = whole[number][name][..., : value.shape[-1]]
                    np.testing.assert_array_equal(value, found, err_msg=name)
        counts = [batch["masked_lm_weights"].sum() for batch in whole]
        assert max(counts[:2]) <= 20 < min(counts[2:])
        for step in (1, 2, 3):
            for one, expected in zip(batches(changed, step), whole[step:], strict=True):
                for name, value in expected.items():
                    np.testing.assert_array_equal(one[name], value, err_msg=name)


@pytest.mark.parametrize("kind", ["records", "text"])
def test_batches_of_other_sizes_go_on_in_the_same_order(work, kind):
    """For hosts as for one; with the noise of the objective that has some."""
    tokenizer = load_tokenizer(str(work / "vocabulary" / "spiece.model"))
    settings = PretrainingSettings(max_seq_length=32, sentence_objective="none")

    def opened(batch_size):
        if kind == "records":
            return open_records(str(work / "nsp"), batch_size)
        return open_text(Corpus(str(work / "corpus.txt")), tokenizer, settings, batch_size)

    def batch_at(data, step, **context):
        batches = with_noise(data.batches, 1, data.sizes)(start_step=step, **context)
        assert batches.element_spec["input_mask"].shape.rank == 2
        assert batches.element_spec["input_mask"].shape.is_fully_defined()
        return next(iter(batches))

    plain, changed = opened(4), opened("4@0,8@2,4@4")
    assert (changed.batch_size, changed.sizes.values) == (8, (4, 8, 4))
    small = np.concatenate([original_words(batch_at(plain, step)) for step in range(7)])
    found = [batch_at(changed, step) for step in range(5)]
    assert [len(batch["input_mask"]) for batch in found] == [4, 4, 8, 8, 4]
    np.testing.assert_array_equal(np.concatenate([original_words(each) for each in found]), small)
    contexts = [tf.distribute.InputContext(2, host, 2) for host in (0, 1)]
    hosts = [batch_at(changed, 3, input_context=context) for context in contexts]
    for name, values in found[3].items():
        parts = np.concatenate([host[name] for host in hosts])
        np.testing.assert_array_equal(parts, values, err_msg=name)


@pytest.mark.parametrize("masks", [{"recurring_mask_share": 0.5}, {"mask_schedule": "0.3@0"}])
def test_static_records_have_their_masks(masks):
    static = Path(__file__).parents[2] / "goldens" / "earlier_folders" / "records" / "static"
    ((name, value),) = masks.items()
    with pytest.raises(UserError, match=f"^--{name}={value} changes masks that are drawn"):
        open_records(str(static), 8, **masks)
