"""What pre-training data look like, and how well one can do on them without reading: baselines."""

from __future__ import annotations

import collections
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from data_pipeline import atomic_files
from data_pipeline.errors import UserError

LABEL_COUNTS_FILE = "label_counts.json"


class RecordStatistics:
    """Sums over records and corpus, gathered while data are made."""

    def __init__(self, vocab_size: int):
        self.label_counts = np.zeros(vocab_size, np.int64)
        self.corpus: collections.Counter = collections.Counter()
        self.skipped: collections.Counter = collections.Counter()
        self.records = self.tokens = self.swapped = 0

    def add_document(self, sentences: Sequence[np.ndarray], unk_id: int) -> None:
        """Counts one document of the corpus, given as token ids of its sentences."""
        self.corpus["documents"] += 1
        self.corpus["sentences"] += len(sentences)
        for sentence in sentences:
            self.corpus["tokens"] += len(sentence)
            self.corpus["unknown_tokens"] += int(np.count_nonzero(sentence == unk_id))

    def add_record(self, columns: Mapping[str, np.ndarray]) -> None:
        """Counts one record, given as unpadded columns."""
        self.records += 1
        self.tokens += len(columns["input_ids"])
        self.swapped += int(columns["next_sentence_labels"][0])
        np.add.at(self.label_counts, columns["masked_lm_ids"], 1)

    @property
    def unknown_share(self) -> float:
        """Share of <unk> among the corpus' tokens."""
        return self.corpus["unknown_tokens"] / max(1, self.corpus["tokens"])

    def summary(self, pieces: Sequence[str]) -> dict[str, Any]:
        """The manifest's statistics."""
        predictions = int(self.label_counts.sum())
        label_balance = self.swapped / max(1, self.records)
        return {
            "tokens": self.tokens,
            "mean_length": self.tokens / max(1, self.records),
            "predictions": predictions,
            "mask_rate": predictions / max(1, self.tokens),
            "label_balance": label_balance,
            "majority_order_accuracy": max(label_balance, 1 - label_balance),
            "skipped": dict(sorted(self.skipped.items())),
            "unigram": (
                predictions and unigram_scores(self.label_counts, self.label_counts, pieces)
            )
            or None,
        }

    def label_counts_json(self) -> bytes:
        """How often each id is a masked label, by id."""
        return json.dumps({"counts": self.label_counts.tolist()}).encode("utf-8")


def unigram_scores(
    train_counts: np.ndarray, eval_counts: np.ndarray, pieces: Sequence[str] | None = None
) -> dict[str, Any]:
    """Scores of guessing masked pieces by their frequency alone.

    Args:
      train_counts: int [V], masked labels of the data that the guess is made from.
      eval_counts: int [V], masked labels to be guessed.
      pieces: names of the ids, or None.

    Returns:
      top_id (and top_piece): the most frequent label of training; accuracy: of always guessing it;
      cross_entropy: of the training frequencies, in nats per label; one is added to each count when
      some label to be guessed never occurred in training.
    """
    total = int(eval_counts.sum())
    if not total or not train_counts.sum():
        raise UserError("There are no masked labels to compute a unigram baseline from.")
    top_id = int(np.argmax(train_counts))
    counts = train_counts.astype(np.float64)
    if np.any((eval_counts > 0) & (train_counts == 0)):
        counts += 1.0
    seen = eval_counts > 0
    log_probabilities = np.log(counts[seen]) - math.log(counts.sum())
    scores = {
        "top_id": top_id,
        "accuracy": float(eval_counts[top_id] / total),
        "cross_entropy": float(-(eval_counts[seen] * log_probabilities).sum() / total),
    }
    return {**scores, "top_piece": pieces[top_id]} if pieces is not None else scores


def read_label_counts(manifest: Mapping[str, Any]) -> np.ndarray:
    """int64 [V]: how often each id is a masked label in the records that a manifest describes."""
    path = os.path.join(manifest["directory"], LABEL_COUNTS_FILE)
    if not tf.io.gfile.exists(path):
        raise UserError(f"{path} is missing; make the data again with --overwrite.")
    return np.array(atomic_files.read_json(path)["counts"], np.int64)


def unigram_baseline(
    train_manifest: Mapping[str, Any], eval_manifest: Mapping[str, Any]
) -> dict[str, Any]:
    """Held-out unigram baseline: label frequencies of one folder of records, scored on another.

    Args:
      train_manifest, eval_manifest: what `records.read_manifest` returned.

    Returns:
      See `unigram_scores`.

    Raises:
      UserError: the two were made with different vocabularies.
    """
    if train_manifest["vocab_fingerprint"] != eval_manifest["vocab_fingerprint"]:
        raise UserError(
            f"{train_manifest['directory']} and {eval_manifest['directory']} were made with "
            "different vocabularies."
        )
    return unigram_scores(read_label_counts(train_manifest), read_label_counts(eval_manifest))


def pretraining_baselines(
    train_manifest: Mapping[str, Any], eval_manifest: Mapping[str, Any]
) -> dict[str, tuple[float, str]]:
    """What a guess without a model reaches: metric -> (figure, how it is guessed).

    Arguments and errors are those of `unigram_baseline`.
    """
    unigram = unigram_baseline(train_manifest, eval_manifest)
    majority = (eval_manifest["statistics"]["majority_order_accuracy"], "most frequent label")
    return {
        "masked_lm_accuracy": (unigram["accuracy"], "most frequent piece"),
        "masked_lm_loss": (unigram["cross_entropy"], "unigram distribution"),
        "sentence_order_accuracy": majority,
        "sentence_order_loss": (math.log(2), "ln 2"),
        "next_sentence_accuracy": majority,
        "next_sentence_loss": (math.log(2), "ln 2"),
    }


def summary_table(manifest: dict[str, Any]) -> str:
    """What was read and written, one line per number."""
    corpus, statistics = manifest["corpus"], manifest["statistics"]
    rows = [
        ("documents", f"{corpus['documents']:,}"),
        ("sentences", f"{corpus['sentences']:,}"),
        ("tokens", f"{corpus['tokens']:,}"),
        ("share of <unk>", f"{corpus['unknown_share']:.3%}"),
        ("records", f"{manifest['num_records']:,} in {manifest['num_shards']} files"),
        ("mean length", f"{statistics['mean_length']:.1f} of {manifest['max_seq_length']}"),
        ("mask rate", f"{statistics['mask_rate']:.2%}"),
        ("swapped pairs", f"{statistics['label_balance']:.2%}"),
        ("most frequent masked piece", _unigram_text(statistics["unigram"])),
    ]
    rows += [(f"skipped: {reason}", f"{n:,}") for reason, n in statistics["skipped"].items()]
    rows += [(f"input: {problem}", f"{n:,}") for problem, n in corpus["problems"].items()]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:{width}}  {value}" for name, value in rows)


def _unigram_text(unigram: dict[str, Any] | None) -> str:
    if unigram is None:
        return "none: nothing was masked"
    return f"{unigram['top_piece']!r}, {unigram['accuracy']:.2%} of the labels"
