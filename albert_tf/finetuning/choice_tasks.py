"""Tasks of a question with C options, one of which is right: RACE, COPA."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from albert_tf.finetuning.predictions import write_predictions
from albert_tf.finetuning.spec import FineTuning, Predictions
from albert_tf.finetuning.text_tasks import (
    CLASS_AVERAGES,
    encoded_features,
    keep_logits,
    score_values,
    target_values,
)
from albert_tf.metrics import Scorer
from albert_tf.models import AlbertMultipleChoice
from albert_tf.tasks import ClassificationTask
from data_pipeline.finetuning.batches import Features
from data_pipeline.finetuning.examples import Split
from data_pipeline.finetuning.features import LengthSettings, choice_ids, encode_choices
from data_pipeline.tokenizers.base import Tokenizer


def multiple_choice(
    name: str,
    reader: Callable[[str, str], Split],
    labels: tuple[str, ...],
    scorer: Scorer,
    **others: Any,
) -> FineTuning:
    """A task in which one of C options is right.

    Args:
      name: of the task.
      reader: (data_dir, split) -> ChoiceExamples.
      labels: names of the options' places, such as A, B, C, D.
      scorer: of the chosen places.
      others: further fields of FineTuning.

    Returns:
      The task.
    """
    return FineTuning(
        name=name,
        reader=reader,
        featurizer=_choice_features,
        model=AlbertMultipleChoice,
        task=ClassificationTask,
        keep=keep_logits,
        decode=CLASS_AVERAGES["probabilities"],
        averages=CLASS_AVERAGES,
        scorer=functools.partial(score_values, scorer),
        gold=target_values,
        metrics=scorer.metrics,
        key=scorer.key,
        write=_write_choices,
        labels=labels,
        **others,
    )


def _choice_features(
    split: Split,
    tokenizer: Tokenizer,
    lengths: LengthSettings,
    labels: Sequence[str],
    has_targets: bool,
) -> Features:
    """Questions as a model's inputs [B, C, S], and `label_ids`; see `FineTuning.featurizer`."""
    encoded = encode_choices(
        split.examples, tokenizer, lengths.max_seq_length, lengths.max_qa_length
    )
    targets: dict[str, np.ndarray] = {}
    if has_targets:
        targets["label_ids"] = choice_ids(split.examples)
    return encoded_features(split, encoded, targets)


def _write_choices(
    path: str, features: Features, labels: Sequence[str], predictions: Predictions
) -> list[str]:
    """Writes questions, chosen options and probabilities as a table; see `FineTuning.write`."""
    examples = features.examples
    given = [example.label for example in examples]
    texts = {
        "question": [example.question for example in examples],
        "chosen": [
            example.options[number] for example, number in zip(examples, predictions.values)
        ],
    }
    table = f"{path}.tsv"
    write_predictions(
        table,
        [example.guid for example in examples],
        texts,
        [labels[number] for number in predictions.values],
        labels=None if None in given else [labels[number] for number in given],
        probabilities=dict(zip(labels, np.transpose(predictions.probabilities))),
    )
    return [table]
