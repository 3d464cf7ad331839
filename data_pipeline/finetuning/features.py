"""Converts examples to model inputs and labels, as google-research/albert does.

read_glue("mrpc", "glue", "train").examples
-> encode_texts(examples, tokenizer, 128).inputs()   input_word_ids ... int32 [N, 128]
   label_ids(examples, ("0", "1"))                   int32 [N]
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from data_pipeline.errors import UserError
from data_pipeline.finetuning.encoded import EncodedExamples, join, tokenize
from data_pipeline.finetuning.examples import ChoiceExample, TextExample
from data_pipeline.settings import Settings, setting
from data_pipeline.tokenizers.base import Tokenizer

_MIN_LENGTH = 5  # [CLS], [SEP], [SEP] and two pieces of text.
MAX_QA_LENGTH = 128
# All Unicode characters that normalization maps to "_".
LOW_LINES = dict.fromkeys(map(ord, "\ufe33\ufe34\ufe4d\ufe4e\ufe4f\uff3f"), "_")


@dataclasses.dataclass(frozen=True)
class LengthSettings(Settings):
    """The lengths of inputs in pieces; the last three apply only to some tasks."""

    max_seq_length: int = setting(
        128,
        "Longest input in pieces, special ones included; longer texts are cut. For SQuAD, use 384 "
        "or 512.",
        at_least=_MIN_LENGTH,
        at_most=65536,
    )
    max_qa_length: int | None = setting(
        None,
        f"Longest question with an option, in pieces, for RACE and COPA; by default "
        f"{MAX_QA_LENGTH}.",
        at_least=1,
        expert=True,
    )
    doc_stride: int = setting(
        128,
        "Distance in pieces from one window of a long text to the next, for SQuAD.",
        at_least=1,
        expert=True,
    )
    max_query_length: int = setting(
        64, "Longest question in pieces, for SQuAD.", at_least=1, expert=True
    )


def check_length(max_seq_length: int) -> None:
    """Raises UserError for a length without room for two texts."""
    if max_seq_length < _MIN_LENGTH:
        raise UserError(
            f"max_seq_length should be at least {_MIN_LENGTH}; received {max_seq_length}."
        )


def kept_lengths(
    length_a: np.ndarray, length_b: np.ndarray, limit: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of pairs after truncation to `limit` pieces in total.

    The longer text loses pieces at its end, B if both are equally long: 10 and 4 -> 5 and 4 for a
    limit of 9, 4 and 3 for 7.
    """
    # B is not cut below half of the limit, nor below the room that A leaves; A gets the rest.
    keep_b = np.minimum(length_b, np.maximum(limit // 2, limit - length_a))
    return np.minimum(length_a, limit - keep_b), keep_b


def encode_texts(
    examples: Sequence[TextExample], tokenizer: Tokenizer, max_seq_length: int
) -> EncodedExamples:
    """Encodes each example as `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`, truncated to S pieces.

    If B has no pieces, for example an empty text, the example is a single text. An S below 5 is a
    UserError.
    """
    check_length(max_seq_length)
    first = tokenize(tokenizer, [example.text_a for example in examples])
    second = tokenize(tokenizer, [example.text_b or "" for example in examples])
    is_pair = second.lengths > 0
    room = max_seq_length - 2 - is_pair
    keep_a, keep_b = kept_lengths(first.lengths, second.lengths, room)
    return join(
        tokenizer,
        first._replace(lengths=keep_a),
        second._replace(lengths=keep_b),
        is_pair,
        max_seq_length,
    )


def fill_blank(question: str, option: str) -> str:
    """A question with an option in place of its blank, or after the question.

    "She _ home.", "went" -> "She went home."; "Where?", "Here." -> "Where? Here."
    """
    # As in the reference, every "_" is replaced by the whole option. Text is not yet normalized, so
    # other Unicode low lines are not "_" yet.
    question = question.translate(LOW_LINES)
    return question.replace("_", option) if "_" in question else f"{question} {option}"


def encode_choices(
    examples: Sequence[ChoiceExample],
    tokenizer: Tokenizer,
    max_seq_length: int,
    max_qa_length: int | None = None,
) -> EncodedExamples:
    """Encodes each option as `[CLS] context [SEP] question and option [SEP]`, cut to S pieces.

    Args:
      examples: N examples, each with the same number of options.
      max_qa_length: most pieces of question and option together; None: 128 as in the reference, or
        fewer if S has no room for them.
    """
    if max_qa_length is None:
        max_qa_length = min(MAX_QA_LENGTH, max_seq_length - 4)
    if not 1 <= max_qa_length <= max_seq_length - 4:
        raise UserError(
            f"max_qa_length should be from 1 to {max_seq_length - 4}, so that max_seq_length "
            f"{max_seq_length} has room for the passage; received {max_qa_length}."
        )
    num_choices = len(examples[0].options)
    for example in examples:
        if len(example.options) != num_choices:
            raise UserError(
                f"{example.place}: expected {num_choices} options as in the first example, found "
                f"{len(example.options)}."
            )
    answered = [
        fill_blank(example.question, option) for example in examples for option in example.options
    ]
    last = tokenize(tokenizer, answered)
    # The last pieces are kept, not the first, because the option is at or near the end.
    keep_last = np.minimum(last.lengths, max_qa_length)
    contexts = [example.context for example in examples for _ in example.options]
    first = tokenize(tokenizer, contexts)
    return join(
        tokenizer,
        first._replace(lengths=np.minimum(first.lengths, max_seq_length - 3 - keep_last)),
        last._replace(starts=last.starts + last.lengths - keep_last, lengths=keep_last),
        np.ones(len(contexts), bool),
        max_seq_length,
        num_choices,
    )


def label_ids(examples: Sequence[TextExample], labels: Sequence[str]) -> np.ndarray:
    """The indices of the examples' labels in `labels`, int32 [N]; UserError for any other label."""
    ids: dict[Any, int] = {name: i for i, name in enumerate(labels)}
    for example in examples:
        if example.label not in ids:
            found = "no label" if example.label is None else f"the label {example.label!r}"
            raise UserError(f"{example.place}: found {found}, not one of {', '.join(labels)}.")
    return np.array([ids[example.label] for example in examples], np.int32)


def label_matrix(examples: Sequence[TextExample], labels: Sequence[str]) -> np.ndarray:
    """Multi-hot labels of each example, int32 [N, C]; UserError for an unknown label.

    ("b",), ("a", "b"), () with the labels a, b -> [[0, 1], [1, 1], [0, 0]].
    """
    places = {name: place for place, name in enumerate(labels)}
    matrix = np.zeros([len(examples), len(labels)], np.int32)
    for row, example in enumerate(examples):
        if not isinstance(example.label, tuple):
            raise UserError(
                f"{example.place}: expected a tuple of labels, found {example.label!r:.40}."
            )
        for name in example.label:
            if name not in places:
                raise UserError(
                    f"{example.place}: found the label {name!r}, not one of {', '.join(labels)}."
                )
            matrix[row, places[name]] = 1
    return matrix


def label_values(examples: Sequence[TextExample]) -> np.ndarray:
    """The examples' labels as numbers, float32 [N]; UserError if one is not a finite number."""
    for example in examples:
        if not isinstance(example.label, (int, float)) or not math.isfinite(example.label):
            raise UserError(
                f"{example.place}: expected a number as label, found {example.label!r}."
            )
    return np.array([example.label for example in examples], np.float32)


def choice_ids(examples: Sequence[ChoiceExample]) -> np.ndarray:
    """The indices of the right options, int32 [N]; UserError if an answer is missing."""
    for example in examples:
        if example.label is None:
            raise UserError(f"{example.place}: found no answer; training and scores need one.")
    return np.array([example.label for example in examples], np.int32)
