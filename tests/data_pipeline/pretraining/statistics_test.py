"""Baselines are what counting by hand gives."""

import json
import math

import numpy as np
import pytest

from data_pipeline.errors import UserError
from data_pipeline.pretraining.columns import RecordColumns
from data_pipeline.pretraining.statistics import RecordStatistics, unigram_baseline, unigram_scores
from data_pipeline.pretraining.tokenized import TokenizedDocuments
from data_pipeline.records.record_folder import read_manifest


def test_unigram_scores():
    scores = unigram_scores(np.array([0, 3, 1]), np.array([0, 1, 1]), ["a", "b", "c"])
    assert (scores["top_id"], scores["top_piece"], scores["accuracy"]) == (1, "b", 0.5)
    assert scores["cross_entropy"] == pytest.approx(-(math.log(3 / 4) + math.log(1 / 4)) / 2)


def test_labels_never_seen_in_training_have_finite_cost():
    scores = unigram_scores(np.array([0, 3, 1]), np.array([1, 0, 0]))
    assert scores["cross_entropy"] == pytest.approx(math.log(7)) and scores["accuracy"] == 0


def test_nothing_masked_is_refused():
    with pytest.raises(UserError, match="no masked labels"):
        unigram_scores(np.array([1]), np.array([0]))


def test_sums():
    parts = [RecordStatistics(6), RecordStatistics(6)]
    sums = np.array([0, 2, 4])
    text = TokenizedDocuments(np.array([1, 5, 5, 5]), sums, np.array([0, 2]), np.ones(4, bool))
    parts[0].add_documents(text, unk_id=1)
    for part, count, swapped in ((parts[0], 1, 0), (parts[1], 3, 3)):
        labels = np.bincount([5] * 2 * count, minlength=6)
        part.add_records(RecordColumns({}, 10 * count, swapped, labels, 2 * count), count)
    statistics = RecordStatistics.from_json(json.loads(json.dumps(parts[1].to_json())))
    statistics.merge(parts[0])
    assert statistics.corpus == {"documents": 1, "sentences": 2, "tokens": 4, "unknown_tokens": 1}
    summary = statistics.summary(list("abcdef"))
    assert statistics.unknown_share == 0.25
    assert summary["label_balance"] == 0.75 and summary["majority_order_accuracy"] == 0.75
    assert summary["mean_length"] == 10 and summary["mask_rate"] == 0.2
    assert summary["unigram"]["top_piece"] == "f" and summary["unigram"]["accuracy"] == 1


def test_baseline_between_folders(records_dir):
    manifest = read_manifest(records_dir)
    own = unigram_baseline(manifest, manifest)
    unigram = manifest["statistics"]["unigram"]
    assert own["top_id"] == unigram["top_id"]
    assert own["cross_entropy"] == pytest.approx(unigram["cross_entropy"])
    with pytest.raises(UserError, match="different vocabularies"):
        unigram_baseline(manifest, {**manifest, "vocab_fingerprint": "0"})
