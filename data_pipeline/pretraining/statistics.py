"""Statistics of pre-training data, and baselines: scores of guesses that do not use the text."""

from __future__ import annotations

import base64
import collections
import json
import math
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files, storage
from data_pipeline.pretraining.columns import RecordColumns
from data_pipeline.pretraining.segments import Pairs
from data_pipeline.pretraining.tokenized import TokenizedDocuments
from data_pipeline.records.record_folder import LABEL_COUNTS_FILE

_COUNTERS = ("corpus", "skipped", "formats", "records")
_MOST_UNKNOWN = 0.05  # Share of tokens; the published vocabulary has 3 % on English Wikipedia.


class RecordStatistics:
    """Sums over records and corpus, collected while data are made."""

    def __init__(self, vocab_size: int) -> None:
        self.label_counts = np.zeros(vocab_size, np.int64)  # Number of predictions of each id.
        # documents, sentences, tokens, unknown_tokens; held_tokens, the number of tokens in records
        # of the first copy, and tokens_looked_at, the number among which these were counted.
        self.corpus: collections.Counter = collections.Counter()
        self.skipped: collections.Counter = collections.Counter()  # Chunks, documents, by reason.
        self.formats: collections.Counter = collections.Counter()  # Parts of files in each format.
        # Number of records, and of their tokens, swapped pairs and predictions.
        self.records: collections.Counter = collections.Counter()

    def add_documents(self, tokenized: TokenizedDocuments, unk_id: int) -> None:
        """Adds documents of the corpus."""
        self.corpus["documents"] += tokenized.num_documents
        self.corpus["sentences"] += tokenized.num_sentences
        self.corpus["tokens"] += len(tokenized.ids)
        self.corpus["unknown_tokens"] += int(np.count_nonzero(tokenized.ids == unk_id))

    def add_records(self, made: RecordColumns) -> None:
        """Adds records."""
        self.records.update(
            records=made.num_records,
            tokens=made.num_tokens,
            swapped=made.num_swapped,
            predictions=made.num_predictions,
        )
        self.label_counts += made.label_counts

    def add_held_tokens(self, pairs: Pairs, ids: np.ndarray, sep_id: int) -> None:
        """Adds the number of tokens of the corpus (ids int32 [T]) that are in at least one of a
        copy's pairs.

        Pairs of the ranges 0:3 and 2:5 among 6 ids -> 5 of 6.
        """
        steps = np.zeros(len(ids) + 1, np.int64)
        segments = ((pairs.start_a, pairs.length_a), (pairs.start_b, pairs.length_b))
        for start, length in segments:
            np.add.at(steps, start, 1)
            np.add.at(steps, start + length, -1)
        is_text = ids != sep_id  # [SEP] separates packed documents.
        self.corpus["held_tokens"] += int(np.count_nonzero((np.cumsum(steps[:-1]) > 0) & is_text))
        self.corpus["tokens_looked_at"] += int(np.count_nonzero(is_text))

    def merge(self, other: RecordStatistics) -> None:
        """Adds the sums of other records."""
        self.label_counts += other.label_counts
        for name in _COUNTERS:
            getattr(self, name).update(getattr(other, name))

    def to_json(self) -> dict[str, Any]:
        """A JSON value that `from_json` reads."""
        # Uncompressed, label_counts take 8 bytes per piece: 240 KB for 30,000 pieces.
        counts = zlib.compress(self.label_counts.astype("<i8").tobytes(), level=1)
        return {
            **{name: dict(getattr(self, name)) for name in _COUNTERS},
            "label_counts": base64.b64encode(counts).decode("ascii"),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> RecordStatistics:
        """Reads the value that `to_json` returned."""
        counts = zlib.decompress(base64.b64decode(value["label_counts"]))
        statistics = cls(0)
        statistics.label_counts = np.frombuffer(counts, "<i8").astype(np.int64)
        for name in _COUNTERS:
            # An earlier version did not store formats.
            setattr(statistics, name, collections.Counter(value.get(name)))
        return statistics

    @property
    def unknown_share(self) -> float:
        """Share of <unk> among the tokens of the corpus, 0 to 1."""
        return self.corpus["unknown_tokens"] / max(1, self.corpus["tokens"])

    @property
    def held_share(self) -> float | None:
        """Share of the corpus's tokens that are in the records of one copy, 0 to 1; None if it was
        not counted, as in folders begun by an earlier version.
        """
        counted = self.corpus["tokens_looked_at"]
        return self.corpus["held_tokens"] / counted if counted else None

    def summary(self, pieces: Sequence[str]) -> dict[str, Any]:
        """The statistics for a manifest; `pieces` are the V pieces by id."""
        records, tokens = max(1, self.records["records"]), max(1, self.records["tokens"])
        label_balance = self.records["swapped"] / records
        return {
            "tokens": self.records["tokens"],
            "mean_length": self.records["tokens"] / records,
            "predictions": self.records["predictions"],
            "mask_rate": self.records["predictions"] / tokens,
            "label_balance": label_balance,
            "majority_order_accuracy": max(label_balance, 1 - label_balance),
            "skipped": dict(sorted(self.skipped.items())),
            "unigram": (
                unigram_scores(self.label_counts, self.label_counts, pieces)
                if self.label_counts.any()
                else None
            ),
        }

    def label_counts_json(self) -> bytes:
        """Content of the file with the number of predictions of each id."""
        return json.dumps({"counts": self.label_counts.tolist()}).encode("utf-8")


def unigram_scores(
    train_counts: np.ndarray, eval_counts: np.ndarray, pieces: Sequence[str] | None = None
) -> dict[str, Any]:
    """Scores of guessing masked pieces by their frequency alone. Takes counts int64 [V] of the
    training labels, and of the labels to guess; UserError if there are none of either.

    Returns top_id (and top_piece), the most frequent training label; accuracy of always guessing
    it; and cross_entropy of the training frequencies, in nats per label.
    """
    total = int(eval_counts.sum())
    if not total or not train_counts.sum():
        raise UserError("There are no masked labels to compute a unigram baseline from.")
    top_id = int(np.argmax(train_counts))
    counts = train_counts.astype(np.float64)
    # Avoids an infinite loss for labels that never occur in training.
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
    """int64 [V]: number of predictions of each id in the records that a manifest describes."""
    path = os.path.join(manifest["directory"], LABEL_COUNTS_FILE)
    if not storage.exists(path):
        raise UserError(f"{path} is missing; make the data again with --overwrite.")
    return np.array(atomic_files.read_json(path)["counts"], np.int64)


def pretraining_baselines(
    train_manifest: Mapping[str, Any], eval_manifest: Mapping[str, Any]
) -> dict[str, tuple[float, str]]:
    """Scores of guesses without a model: metric -> (score, name of the guess). The label of a pair
    is guessed as the most frequent one or from the lengths of the segments, whichever is better.
    Different vocabularies are a UserError.
    """
    if train_manifest["vocab_fingerprint"] != eval_manifest["vocab_fingerprint"]:
        raise UserError(
            f"{train_manifest['directory']} and {eval_manifest['directory']} were made with "
            "different vocabularies."
        )
    unigram = unigram_scores(read_label_counts(train_manifest), read_label_counts(eval_manifest))
    order = (eval_manifest["statistics"]["majority_order_accuracy"], "most frequent label")
    order_loss = (math.log(2), "ln 2")
    if eval_manifest["settings"]["sentence_objective"] != "none":
        from data_pipeline.pretraining.length_baseline import length_baseline  # Needs TensorFlow.

        accuracy, loss = length_baseline(train_manifest, eval_manifest) or (0.0, math.inf)
        order = max(order, (accuracy, "lengths of the segments"))
        order_loss = min(order_loss, (loss, "lengths of the segments"))
    return {
        "masked_lm_accuracy": (unigram["accuracy"], "most frequent piece"),
        "masked_lm_loss": (unigram["cross_entropy"], "unigram distribution"),
        "sentence_order_accuracy": order,
        "sentence_order_loss": order_loss,
        "next_sentence_accuracy": order,
        "next_sentence_loss": order_loss,
    }


def unknown_warning(share: float) -> str:
    """A warning if the share of <unk> among the tokens is above 5 %; otherwise ""."""
    if share <= _MOST_UNKNOWN:
        return ""
    return (
        f"{share:.1%} of the tokens are <unk>: the vocabulary does not suit this text (other "
        "language, or upper case kept?)."
    )


def summary_table(manifest: dict[str, Any]) -> str:
    """The figures of a manifest, one per line: documents read, records written."""
    corpus, statistics = manifest["corpus"], manifest["statistics"]
    most_frequent = "none: nothing was masked"
    if unigram := statistics["unigram"]:
        most_frequent = f"{unigram['top_piece']!r}, {unigram['accuracy']:.2%} of the labels"
    rows = [
        (name, f"{corpus[name]:,}")
        for name in ("documents", "sentences", "tokens")
        if name in corpus
    ]
    if corpus.get("formats"):
        rows.append(("format", ", ".join(corpus["formats"])))
    if "unknown_share" in corpus:
        rows.append(("share of <unk>", f"{corpus['unknown_share']:.3%}"))
    if corpus.get("held_share") is not None:
        rows.append(("share in the records", f"{corpus['held_share']:.1%}"))
    rows += [
        ("records", f"{manifest['num_records']:,} in {manifest['num_shards']} files"),
        ("mean length", f"{statistics['mean_length']:.1f} of {manifest['max_seq_length']}"),
        ("mask rate", f"{statistics['mask_rate']:.2%}"),
        ("swapped pairs", f"{statistics['label_balance']:.2%}"),
        ("most frequent masked piece", most_frequent),
    ]
    rows += [(f"skipped: {reason}", f"{n:,}") for reason, n in statistics["skipped"].items()]
    rows += [(f"input: {problem}", f"{n:,}") for problem, n in corpus["problems"].items()]
    return table(rows)


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Names and values in two columns, one pair per line."""
    rows = list(rows)
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:{width}}  {value}" for name, value in rows)
