"""What lengths tell of labels is found, and no more."""

import hashlib
import math
from pathlib import Path

import numpy as np
import pytest

from data_pipeline.pretraining.length_baseline import length_baseline
from data_pipeline.pretraining.statistics import pretraining_baselines
from data_pipeline.records import example_bytes, record_folder
from tests.data_pipeline.conftest import rows

LENGTH, VOCABULARY = 32, 20


def columns(first, second, labels, masking):
    """What the baseline and the schema need of a record."""
    if masking == "dynamic":
        ends = np.cumsum(first + second)
        tokens = np.ones(ends[-1], np.int64)
        return {
            "token_ids": example_bytes.int_column(tokens, ends),
            "token_boundary": example_bytes.int_column(tokens, ends),
            "num_tokens_a": example_bytes.int_column(first[:, None]),
            "next_sentence_labels": example_bytes.int_column(labels[:, None]),
        }
    place = np.arange(LENGTH)[None]
    in_first, total = (first + 2)[:, None], (first + second + 3)[:, None]
    values = {
        "input_mask": place < total,
        "segment_ids": (place >= in_first) & (place < total),
        "next_sentence_labels": labels[:, None],
    }
    return {name: example_bytes.int_column(v.astype(np.int64)) for name, v in values.items()}


def folder(path: Path, objective, masking, seed, count=6000, share=0.8) -> dict:
    """The second segment is the longer one in `share` of the pairs with label 1, else as often the
    shorter one.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    short, gap = rng.integers(3, 7, count), rng.integers(1, 8, count)
    is_longer = rng.random(count) < np.where(labels == 1, share, 1 - share)
    first, second = np.where(is_longer, (short, short + gap), (short + gap, short))
    partial, files = Path(record_folder.partial_dir(str(path))), []
    partial.mkdir(parents=True)
    for shard, chosen in enumerate(np.array_split(np.arange(count), 20)):
        made = columns(first[chosen], second[chosen], labels[chosen], masking)
        content = b"".join(map(example_bytes.frame, example_bytes.encode_examples(made)))
        name = f"{shard:02d}.tfrecord"
        (partial / name).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        entry = {"name": name, "num_records": len(chosen), "bytes": len(content)}
        files.append({**entry, "sha256": digest})
    manifest = {
        "num_records": count,
        "files": files,
        "masking": masking,
        "max_seq_length": LENGTH,
        "max_predictions": 5,
        "vocab_fingerprint": "0",
        "settings": {"sentence_objective": objective},
        "statistics": {"majority_order_accuracy": 0.5},
    }
    counts = b'{"counts": [1, 2]}'
    record_folder.commit(str(path), manifest, {record_folder.LABEL_COUNTS_FILE: counts})
    return record_folder.read_manifest(str(path))


@pytest.mark.parametrize("masking", rows(["static", "dynamic"], "static"))
def test_lengths_tell_next_sentences(tmp_path, masking):
    train = folder(tmp_path / "train", "nsp", masking, seed=1)
    heldout = folder(tmp_path / "heldout", "nsp", masking, seed=2)
    expected = -0.8 * math.log(0.8) - 0.2 * math.log(0.2)
    for found in (length_baseline(train, heldout), length_baseline(heldout, heldout)):
        assert found == pytest.approx((0.8, expected), abs=0.02)
    assert length_baseline(train, heldout) == length_baseline(train, heldout)
    baselines = pretraining_baselines(train, heldout)
    accuracy, guess = baselines["next_sentence_accuracy"]
    assert accuracy == pytest.approx(0.8, abs=0.02) and guess == "lengths of the segments"
    loss, guess = baselines["next_sentence_loss"]
    assert loss == pytest.approx(expected, abs=0.02) and guess == "lengths of the segments"


def test_training_data_of_another_objective_teach_nothing(tmp_path):
    """There the longer segment has the other label."""
    train = folder(tmp_path / "train", "sop", "static", seed=1, share=0.2)
    heldout = folder(tmp_path / "heldout", "nsp", "static", seed=2)
    assert length_baseline(train, heldout) == length_baseline(heldout, heldout)


def test_orders_drawn_while_reading_are_both_counted(tmp_path):
    """Labels of dynamic records of sentence order mean nothing; the order as stored is label 0."""
    found = folder(tmp_path / "a", "sop", "dynamic", seed=1, count=4000)
    assert length_baseline(found, found)[0] == pytest.approx(0.5, abs=0.03)


def test_what_says_nothing_falls_back_on_the_most_frequent_label(tmp_path):
    few = folder(tmp_path / "few", "nsp", "dynamic", seed=1, count=40)
    assert length_baseline(few, few) is None
    baselines = pretraining_baselines(few, few)
    assert baselines["next_sentence_accuracy"] == (0.5, "most frequent label")
    assert baselines["next_sentence_loss"] == (math.log(2), "ln 2")
    none = {**few, "settings": {"sentence_objective": "none"}}
    assert pretraining_baselines(none, none)["next_sentence_accuracy"][1] == "most frequent label"


def test_dynamic_segments_have_no_lengths(tmp_path):
    chunks, pairs = (folder(tmp_path / name, "sop", "dynamic", 1, count=300) for name in "ab")
    alone = length_baseline(pairs, pairs)
    chunks["settings"]["segments"] = "dynamic"
    assert length_baseline(chunks, chunks) is None
    assert length_baseline(chunks, pairs) == alone  # Learned from the held-out ones.
