"""A baseline for the labels of pairs: guesses based only on the lengths of the two segments.

A second segment from another document tends to have another length than the one that follows, so
guesses may exceed an accuracy of one half.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from sklearn import metrics, model_selection, tree

from data_pipeline.records import features

_MAX_RECORDS, _MAX_SHARDS, _BATCH = 20_000, 16, 512
_MIN_RECORDS = 100


def length_baseline(
    train_manifest: Mapping[str, Any], eval_manifest: Mapping[str, Any]
) -> tuple[float, float] | None:
    """Accuracy and loss (nats) of guessing labels from the lengths of the segments only, on at most
    20,000 held-out records. None if there are fewer than 100 records, only one kind of label, or
    dynamic segments. The result is deterministic.
    """
    # The guesses are those of a decision tree, fitted to at most 20,000 records from the training
    # folder. If that has another objective, each fifth of the held-out records is guessed from the
    # others.
    if _is_divided_later(eval_manifest):  # The records have no segments.
        return None
    lengths, labels = _read(eval_manifest)
    is_alone = (
        train_manifest["directory"] == eval_manifest["directory"]
        or _objective(train_manifest) != _objective(eval_manifest)
        or _is_divided_later(train_manifest)
    )
    train_lengths, train_labels = (lengths, labels) if is_alone else _read(train_manifest)
    # Enough records, with both labels.
    if len(train_labels) < _MIN_RECORDS or not 0 < train_labels.mean() < 1:
        return None
    # Leaves hold at least 2 % of the records, to avoid overfitting to single records.
    guesser = tree.DecisionTreeClassifier(min_samples_leaf=0.02, random_state=0)
    if is_alone:
        folds = model_selection.KFold(5)
        probabilities = model_selection.cross_val_predict(
            guesser, lengths, labels, cv=folds, method="predict_proba"
        )
    else:
        probabilities = guesser.fit(train_lengths, train_labels).predict_proba(lengths)
    accuracy = metrics.accuracy_score(labels, probabilities.argmax(axis=1))
    return float(accuracy), float(metrics.log_loss(labels, probabilities, labels=[0, 1]))


def _objective(manifest: Mapping[str, Any]) -> str:
    return manifest["settings"]["sentence_objective"]


def _is_divided_later(manifest: Mapping[str, Any]) -> bool:
    return manifest["settings"].get("segments") == "dynamic"


def _read(manifest: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of the segments, their sum and difference int32 [N, 4], and labels int32 [N]."""
    entries = [entry for entry in manifest["files"] if entry["num_records"]]
    entries = entries[:: -(-len(entries) // _MAX_SHARDS)]
    paths = [os.path.join(manifest["directory"], entry["name"]) for entry in entries]
    count = -(-_MAX_RECORDS // len(paths))
    dataset = tf.data.Dataset.from_tensor_slices(paths)
    dataset = dataset.flat_map(lambda path: tf.data.TFRecordDataset(path).take(count))
    parts = [_pairs(manifest, serialized) for serialized in dataset.batch(_BATCH)]
    first, second, labels = np.concatenate(parts, axis=1)
    return np.stack([first, second, first + second, first - second], axis=1), labels


def _pairs(manifest: Mapping[str, Any], serialized: tf.Tensor) -> np.ndarray:
    """int32 [3, pairs]: both lengths and the label."""
    names = ("token_ids", "num_tokens_a", "input_mask", "segment_ids", "next_sentence_labels")
    schema = [feature for feature in features.schema_of(manifest) if feature.name in names]
    columns = features.parse(schema, serialized)
    labels = columns["next_sentence_labels"].numpy()[:, 0]
    if manifest["masking"] == "static":
        second = columns["segment_ids"].numpy().sum(axis=1)
        return np.stack([columns["input_mask"].numpy().sum(axis=1) - second, second, labels])
    first = columns["num_tokens_a"].numpy()[:, 0]
    second = columns["token_ids"].row_lengths().numpy() - first
    if _objective(manifest) != "sop":
        return np.stack([first, second, labels])
    # Both orders are equally likely when one is drawn, so each record counts in both, adjacent.
    ones = np.ones_like(labels)
    both = [[first, second], [second, first], [0 * ones, ones]]
    return np.stack([np.stack(pair, axis=1).ravel() for pair in both])
