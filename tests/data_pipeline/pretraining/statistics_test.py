"""Baselines are what counting by hand gives."""

import json
import math

import numpy as np
import pytest

from data_pipeline.errors import UserError
from data_pipeline.pretraining import length_baseline, statistics
from data_pipeline.pretraining.columns import RecordColumns
from data_pipeline.pretraining.segments import Pairs
from data_pipeline.pretraining.statistics import (
    RecordStatistics,
    pretraining_baselines,
    read_label_counts,
    summary_table,
    table,
    unigram_scores,
    unknown_warning,
)
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
        part.add_records(RecordColumns({}, count, 10 * count, swapped, labels, 2 * count))
    statistics = RecordStatistics.from_json(json.loads(json.dumps(parts[1].to_json())))
    statistics.merge(parts[0])
    statistics.skipped.update({"b": 1, "a": 2})
    assert statistics.corpus == {"documents": 1, "sentences": 2, "tokens": 4, "unknown_tokens": 1}
    summary = statistics.summary(list("abcdef"))
    assert statistics.unknown_share == 0.25
    assert summary["label_balance"] == 0.75 and summary["majority_order_accuracy"] == 0.75
    assert summary["mean_length"] == 10 and summary["mask_rate"] == 0.2
    assert (summary["tokens"], summary["predictions"]) == (40, 8)
    assert list(summary["skipped"]) == ["a", "b"]
    assert summary["unigram"]["top_piece"] == "f" and summary["unigram"]["accuracy"] == 1


def test_tokens_that_pairs_hold_are_counted_once():
    """The ranges 0:3 and 2:5, of which 4 is a separator, and nothing of the last two tokens."""
    found = RecordStatistics(6)
    pairs = Pairs(*np.array([[0, 3, 0, 0, 0], [2, 2, 4, 1, 0]]).T)
    found.add_held_tokens(pairs, np.array([1, 1, 1, 1, 5, 1, 1]), sep_id=5)
    assert found.corpus == {"held_tokens": 4, "tokens_looked_at": 6}


def test_baseline_between_folders(records_dir):
    manifest = read_manifest(records_dir)
    own = unigram_scores(read_label_counts(manifest), read_label_counts(manifest))
    unigram = manifest["statistics"]["unigram"]
    assert own["top_id"] == unigram["top_id"]
    assert own["cross_entropy"] == pytest.approx(unigram["cross_entropy"])
    with pytest.raises(UserError, match="different vocabularies"):
        pretraining_baselines(manifest, {**manifest, "vocab_fingerprint": "0"})


def test_label_counts_travel_beside_the_records(tmp_path):
    statistics = RecordStatistics(3)
    statistics.label_counts += [5, 0, 7]
    (tmp_path / "label_counts.json").write_bytes(statistics.label_counts_json())
    assert read_label_counts({"directory": str(tmp_path)}).tolist() == [5, 0, 7]
    with pytest.raises(UserError, match=r"label_counts.json is missing; make the data again"):
        read_label_counts({"directory": str(tmp_path / "none")})


def test_nothing_made_has_a_summary():
    summary = RecordStatistics(3).summary("abc")
    assert summary == {
        "tokens": 0, "mean_length": 0.0, "predictions": 0, "mask_rate": 0.0, "label_balance": 0.0,
        "majority_order_accuracy": 1.0, "skipped": {}, "unigram": None,
    }  # fmt: skip
    assert RecordStatistics(3).unknown_share == 0


def test_baselines_of_the_sentence_objective(monkeypatch):
    """The better of two guesses; without pairs, lengths say nothing."""
    monkeypatch.setattr(statistics, "read_label_counts", lambda manifest: np.array([1, 3]))
    found = [(0.7, 0.6)]
    monkeypatch.setattr(length_baseline, "length_baseline", lambda train, held_out: found[0])

    def baselines(majority, objective="sop"):
        manifest = {
            "vocab_fingerprint": "0",
            "settings": {"sentence_objective": objective},
            "statistics": {"majority_order_accuracy": majority},
        }
        return pretraining_baselines(manifest, manifest)

    found_baselines = baselines(0.5)
    loss, guess = found_baselines.pop("masked_lm_loss")
    assert loss == pytest.approx(-0.25 * math.log(0.25) - 0.75 * math.log(0.75))
    assert guess == "unigram distribution"
    assert found_baselines == {
        "masked_lm_accuracy": (0.75, "most frequent piece"),
        "sentence_order_accuracy": (0.7, "lengths of the segments"),
        "sentence_order_loss": (0.6, "lengths of the segments"),
        "next_sentence_accuracy": (0.7, "lengths of the segments"),
        "next_sentence_loss": (0.6, "lengths of the segments"),
    }
    assert baselines(0.8)["sentence_order_accuracy"] == (0.8, "most frequent label")
    assert baselines(0.5, "none")["next_sentence_accuracy"] == (0.5, "most frequent label")
    assert baselines(0.5, "none")["next_sentence_loss"] == (math.log(2), "ln 2")
    found[0] = None
    assert baselines(0.5)["sentence_order_accuracy"] == (0.5, "most frequent label")
    assert baselines(0.5)["sentence_order_loss"] == (math.log(2), "ln 2")


def test_unknown_pieces_are_warned_of_above_five_per_cent():
    assert unknown_warning(0.0) == unknown_warning(0.05) == ""
    assert unknown_warning(0.0523).startswith("5.2% of the tokens are <unk>: the vocabulary does")


def test_the_summary_as_a_table():
    manifest = {
        "corpus": {"documents": 1234, "sentences": 5, "tokens": 6, "unknown_share": 0.01234,
                   "problems": {"not JSON, skipped": 2000}},
        "statistics": {"mean_length": 60.04, "mask_rate": 0.15, "label_balance": 0.5,
                       "unigram": {"top_piece": "the", "accuracy": 0.05}, "skipped": {"x": 3}},
        "num_records": 4321, "num_shards": 2, "max_seq_length": 64,
    }  # fmt: skip
    assert summary_table(manifest).split("\n") == [
        "  documents                   1,234",
        "  sentences                   5",
        "  tokens                      6",
        "  share of <unk>              1.234%",
        "  records                     4,321 in 2 files",
        "  mean length                 60.0 of 64",
        "  mask rate                   15.00%",
        "  swapped pairs               50.00%",
        "  most frequent masked piece  'the', 5.00% of the labels",
        "  skipped: x                  3",
        "  input: not JSON, skipped    2,000",
    ]
    manifest["corpus"] = {"problems": {}}
    manifest["statistics"] |= {"unigram": None, "skipped": {}}
    shown = summary_table(manifest)
    assert "none: nothing was masked" in shown and "documents" not in shown
    assert table([("a", "1"), ("bcd", "2")]) == "  a    1\n  bcd  2"
