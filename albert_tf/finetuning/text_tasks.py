"""Tasks of one text or a pair of texts: a class, or a number, for each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from albert_tf.finetuning.averaging import AVERAGES
from albert_tf.finetuning.predictions import write_predictions
from albert_tf.finetuning.spec import FineTuning, Kept, Predictions
from albert_tf.metrics import Scorer, Scores
from albert_tf.models import AlbertClassifier
from albert_tf.tasks import ClassificationTask, RegressionTask
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.encoded import EncodedExamples
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.features import (
    LengthSettings,
    encode_texts,
    label_ids,
    label_values,
)
from data_pipeline.tokenizers.base import Tokenizer


def classification(
    name: str,
    reader: Callable[[str, str], Split] | None,
    labels: tuple[str, ...] | None,
    scorer: Scorer,
    **others: Any,
) -> FineTuning:
    """A task in which each text, or pair of texts, has one of C labels.

    Args:
      name: of the task.
      reader: (data_dir, split) -> TextExamples.
      labels: names of the classes in order; None: give `find_labels`.
      scorer: of the predicted classes.
      others: further fields of FineTuning.

    Returns:
      The task.
    """
    return FineTuning(
        name=name,
        reader=reader,
        featurizer=text_features,
        model=AlbertClassifier,
        task=ClassificationTask,
        keep=keep_logits,
        decode=CLASS_AVERAGES["probabilities"],
        averages=CLASS_AVERAGES,
        scorer=functools.partial(score_values, scorer),
        gold=target_values,
        metrics=scorer.metrics,
        key=scorer.key,
        write=write_texts,
        labels=labels,
        **others,
    )


def regression(
    name: str, reader: Callable[[str, str], Split] | None, scorer: Scorer, **others: Any
) -> FineTuning:
    """A task in which each text, or pair of texts, has a number.

    Args:
      name: of the task.
      reader: (data_dir, split) -> TextExamples.
      scorer: of the predicted numbers.
      others: further fields of FineTuning.

    Returns:
      The task.
    """
    return FineTuning(
        name=name,
        reader=reader,
        featurizer=text_features,
        model=AlbertClassifier,
        task=RegressionTask,
        keep=keep_logits,
        decode=_decode_numbers,
        averages={"values": _decode_numbers},
        scorer=functools.partial(score_values, scorer),
        gold=target_values,
        metrics=scorer.metrics,
        key=scorer.key,
        write=write_texts,
        labels=(),
        **others,
    )


def text_features(
    split: Split,
    tokenizer: Tokenizer,
    lengths: LengthSettings,
    labels: Sequence[str],
    has_targets: bool,
) -> Features:
    """Texts as a model's inputs; `label_ids` or, without labels, `label_values` as targets.

    Args:
      split: TextExamples.
      tokenizer: of the model.
      lengths: where texts are cut.
      labels: names of the classes in order; (): the examples have numbers.
      has_targets: False: nothing is known about the examples.

    Returns:
      N rows, one for each example.

    Raises:
      UserError: a label is missing or unknown, with file and line.
    """
    encoded = encode_texts(split.examples, tokenizer, lengths.max_seq_length)
    targets: dict[str, np.ndarray] = {}
    if has_targets and labels:
        targets["label_ids"] = label_ids(split.examples, labels)
    elif has_targets:
        targets["label_values"] = label_values(split.examples)
    return encoded_features(split, encoded, targets)


def encoded_features(
    split: Split, encoded: EncodedExamples, targets: dict[str, np.ndarray]
) -> Features:
    """Features of examples that are pieces already; targets: what is to be learned, [N] by name."""
    content = {"ids": encoded.ids, "lengths": encoded.lengths, "first": encoded.first_lengths}
    return Features(
        split.examples,
        encoded.inputs,
        encoded.longest,
        encoded.max_seq_length,
        targets,
        {**content, **targets},
    )


def keep_logits(features: Features, outputs: dict[str, np.ndarray]) -> Kept:
    """The logits, float32 [N, C]."""
    return {"logits": outputs["logits"]}


def _decode_classes(average: str, features: Features, members: Sequence[Kept]) -> Predictions:
    """The likeliest class of each example by an average of the members' outputs."""
    probabilities = AVERAGES[average](np.stack([member["logits"] for member in members]))
    return Predictions(probabilities.argmax(axis=1).tolist(), probabilities)


# Of tasks with classes: --average by name.
CLASS_AVERAGES = {name: functools.partial(_decode_classes, name) for name in AVERAGES}


def _decode_numbers(features: Features, members: Sequence[Kept]) -> Predictions:
    """The mean of the members' numbers."""
    mean = np.mean([member["logits"][:, 0] for member in members], axis=0)
    return Predictions(mean.astype(np.float64).tolist())


def score_values(scorer: Scorer, features: Features, predictions: Predictions) -> Scores:
    """The scores of values for each example."""
    groups = [example.group for example in features.examples] if scorer.groups else None
    return scorer(target_values(features), predictions.values, groups)


def target_values(features: Features) -> list[Any]:
    """The one target of each example: the place of its class, or its number."""
    (values,) = features.targets.values()
    return values.tolist()


def write_texts(
    path: str, features: Features, labels: Sequence[str], predictions: Predictions
) -> list[str]:
    """Writes the texts and their predictions as a table, see predictions.py.

    Args:
      path: of the file, without its ending.
      features: their examples are TextExamples.
      labels: names of the classes; (): predictions are numbers.
      predictions: of these examples.

    Returns:
      Path of the table.
    """
    examples = features.examples
    texts = {"text": [example.text_a for example in examples]}
    if any(example.text_b is not None for example in examples):
        texts["text_b"] = [example.text_b or "" for example in examples]
    given = [example.label for example in examples]
    answers, probabilities = predictions.values, None
    if labels:
        answers = [labels[number] for number in predictions.values]
        probabilities = dict(zip(labels, np.transpose(predictions.probabilities)))
    table = f"{path}.tsv"
    write_predictions(
        table,
        [example.guid for example in examples],
        texts,
        answers,
        labels=None if None in given else given,
        probabilities=probabilities,
    )
    return [table]
