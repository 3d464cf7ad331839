"""Tasks of sentences whose words have tags: named entities, parts of speech."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from albert_tf.finetuning.averaging import AVERAGES
from albert_tf.finetuning.predictions import one_cell
from albert_tf.finetuning.spec import FineTuning, Kept, Predictions
from albert_tf.metrics import Scorer, Scores
from albert_tf.metrics.tagging import conlleval_tags
from albert_tf.models import AlbertTokenClassifier
from albert_tf.tasks import TokenClassificationTask
from data_pipeline.files import atomic_files
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.finetuning.tagging import (
    OUTSIDE,
    read_tagged,
    read_tagged_folder,
    tag_names,
)
from data_pipeline.finetuning.tagging_features import encode_tagged
from data_pipeline.tokenizers.base import Tokenizer

Tags = tuple[str, ...]


def tagging(
    name: str,
    scorer: Scorer,
    reader: Callable[[str, str], Split] | None = read_tagged_folder,
    file_reader: Callable[[str, str], Split] | None = read_tagged,
    **others: Any,
) -> FineTuning:
    """A task in which each word of a sentence has one of C tags.

    Args:
      name: of the task.
      scorer: of the predicted tags of sentences.
      reader: (data_dir, split) -> TaggedExamples.
      file_reader: (path, split) -> TaggedExamples.
      others: further fields of FineTuning.

    Returns:
      The task.
    """
    return FineTuning(
        name=name,
        reader=reader,
        file_reader=file_reader,
        featurizer=_tagged_features,
        model=AlbertTokenClassifier,
        task=TokenClassificationTask,
        keep=_keep_words,
        decode=functools.partial(_decode_tags, "probabilities"),
        averages={name: functools.partial(_decode_tags, name) for name in AVERAGES},
        scorer=functools.partial(_score_tags, scorer),
        gold=_gold_tags,
        metrics=scorer.metrics,
        key=scorer.key,
        write=_write_tagged,
        labels=None,
        find_labels=tag_names,
        **others,
    )


def _tagged_features(
    split: Split,
    tokenizer: Tokenizer,
    lengths: LengthSettings,
    labels: Sequence[str],
    has_targets: bool,
) -> Features:
    """Sentences as a model's inputs; `Features.examples` are their `TaggedPieces`."""
    encoded = encode_tagged(split.examples, tokenizer, lengths.max_seq_length, labels, has_targets)
    if encoded.note:
        print(encoded.note)
    pieces = encoded.pieces
    content = {
        "ids": pieces.ids,
        "lengths": pieces.lengths,
        "rows": encoded.rows,
        "places": encoded.places,
    }
    if encoded.tag_ids is not None:
        content["tag_ids"] = encoded.tag_ids
    return Features(
        encoded,
        encoded.inputs,
        pieces.lengths,
        pieces.max_seq_length,
        {},
        content,
        sequence_outputs=("logits",),
    )


def _keep_words(features: Features, outputs: dict[str, np.ndarray]) -> Kept:
    """The logits at the first piece of each word that was not cut off, float32 [W, C]."""
    sentences = features.examples
    return {"logits": outputs["logits"][sentences.rows, sentences.places]}


def _decode_tags(average: str, features: Features, members: Sequence[Kept]) -> Predictions:
    """The likeliest tag of each word by an average of the members' outputs.

    Words that were cut off are predicted to be O, with the probability 0.

    Returns:
      `values`: the tags of each sentence; `probabilities`: float [W, C]; `details`: the
      probabilities of the tags of each sentence.
    """
    sentences = features.examples
    probabilities = AVERAGES[average](np.stack([member["logits"] for member in members]))
    names = iter([sentences.labels[number] for number in probabilities.argmax(axis=1)])
    highest = iter(probabilities.max(axis=1).tolist())
    values: list[Tags] = []
    details: list[tuple[float, ...]] = []
    for example, num_kept in zip(sentences.examples, sentences.num_kept.tolist()):
        num_cut = len(example.words) - num_kept
        values.append((*itertools.islice(names, num_kept), *[OUTSIDE] * num_cut))
        details.append((*itertools.islice(highest, num_kept), *[0.0] * num_cut))
    return Predictions(values, probabilities, details)


def _gold_tags(features: Features) -> list[Tags]:
    return [example.tags for example in features.examples.examples]


def _score_tags(scorer: Scorer, features: Features, predictions: Predictions) -> Scores:
    """The scores of whole spans; of single words where the tags describe no spans."""
    labels = features.examples.labels
    right, predicted = (
        [conlleval_tags(tags, labels) for tags in sentences]
        for sentences in (_gold_tags(features), predictions.values)
    )
    return scorer(right, predicted)


def _write_tagged(
    path: str, features: Features, labels: Sequence[str], predictions: Predictions
) -> list[str]:
    """Writes a line for each word and an empty one after each sentence.

    Columns, separated by tabs: the word, the last column of the file if it has more than one (the
    right tag, where it is known), the predicted tag, its probability.

    Args:
      path: of the file, without its ending.
      features: their examples are TaggedPieces.
      labels: names of the tags.
      predictions: of these sentences.

    Returns:
      Path of the file.
    """
    lines = []
    for example, predicted, highest in zip(
        features.examples.examples, predictions.values, predictions.details
    ):
        columns: list[Sequence[str]] = [[one_cell(word) for word in example.words]]
        if example.tags is not None:
            columns.append([one_cell(tag) for tag in example.tags])
        columns += [predicted, [f"{value:.6f}" for value in highest]]
        lines += ["\t".join(row) for row in zip(*columns)]
        lines.append("")
    written = f"{path}.conll"
    atomic_files.write_bytes(written, ("\n".join(lines) + "\n").encode("utf-8"))
    return [written]
