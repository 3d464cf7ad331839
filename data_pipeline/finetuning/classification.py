"""Classification of sentences and pairs: TSV files with a header row to inputs and batches."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from data_pipeline.errors import UserError
from data_pipeline.files import atomic_files
from data_pipeline.finetuning import tsv
from data_pipeline.records.batches import check_batch, host_rows, with_options
from data_pipeline.records.order import batch_epochs, permutation
from data_pipeline.tokenizers.base import Tokenizer


@dataclasses.dataclass(frozen=True)
class Examples:
    """The examples of a file, column by column.

    Attributes:
      source: path of the file.
      lines: line number of each example, from 1.
      text_a: first texts.
      text_b: second texts; None: the task has none.
      labels: labels as written; None: the file has none.
    """

    source: str
    lines: list[int]
    text_a: list[str]
    text_b: list[str] | None
    labels: list[str] | None

    def __len__(self) -> int:
        return len(self.text_a)


def read_tsv(
    path: str,
    text_column: str = "text",
    pair_column: str | None = None,
    label_column: str | None = "label",
) -> Examples:
    """Reads a tab-separated file whose first row names the columns; quotes mean nothing.

    Args:
      path: UTF-8 file.
      text_column: name of the column of the (first) text.
      pair_column: name of the column of the second text, or None.
      label_column: name of the column of the label, or None for files without labels.

    Returns:
      The examples of all rows that are not empty, at least one.

    Raises:
      UserError: the file cannot be read, with the line that is wrong.
    """
    path = os.fspath(path)
    examples = tsv.read_tsv(path, text_column, pair_column, label_column).examples
    return Examples(
        path,
        [example.line for example in examples],
        [example.text_a for example in examples],
        [example.text_b or "" for example in examples] if pair_column else None,
        [str(example.label) for example in examples] if label_column else None,
    )


def write_predictions(path: str, labels: Sequence[str], probabilities: np.ndarray) -> None:
    """Writes a TSV, atomically: the likeliest label, and the probability of each label.

    Args:
      path: file to write.
      labels: names of the C classes in order.
      probabilities: float32 [N, C].
    """
    rows = [["label", *labels]]
    for row in probabilities:
        rows.append([labels[row.argmax()], *(f"{value:.6f}" for value in row)])
    text = "".join("\t".join(row) + "\n" for row in rows)
    atomic_files.write_bytes(path, text.encode("utf-8"))


def label_names(examples: Examples) -> list[str]:
    """The distinct labels, sorted (as numbers when all are whole numbers); at least two.

    Raises:
      UserError: there is no label, a single one, or so many numbers that they are no classes.
    """
    if examples.labels is None:
        raise UserError(f"{examples.source} was read without labels; name its label column.")
    return tsv.class_names(examples.labels, examples.source)


def truncate_pair(tokens_a: list[int], tokens_b: list[int], limit: int) -> tuple[int, int]:
    """Lengths of two texts that are cut to `limit` ids together.

    The longer loses ids at its end, B if both are equal: lengths 10 and 4 -> 5, 4 for a limit of 9,
    4, 3 for 7.
    """
    length_a, length_b = len(tokens_a), len(tokens_b)
    if length_a + length_b <= limit:
        return length_a, length_b
    if length_b <= limit // 2:
        return limit - length_b, length_b
    if length_a <= limit - limit // 2:
        return length_a, limit - length_a
    return limit - limit // 2, limit // 2


def _pack(
    tokenizer: Tokenizer, tokens_a: list[int], tokens_b: list[int], max_seq_length: int
) -> tuple[list[int], int]:
    """`[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`, and the length of its first segment."""
    special = 3 if tokens_b else 2
    keep_a, keep_b = truncate_pair(tokens_a, tokens_b, max_seq_length - special)
    first = [tokenizer.cls_id, *tokens_a[:keep_a], tokenizer.sep_id]
    second = [*tokens_b[:keep_b], tokenizer.sep_id] if tokens_b else []
    return first + second, len(first)


def encode_classification(
    examples: Examples,
    tokenizer: Tokenizer,
    max_seq_length: int,
    labels: Sequence[str] | None = None,
) -> dict[str, np.ndarray]:
    """Model inputs, as google-research/albert's run_classifier makes them.

    Args:
      examples: texts and labels, as from `read_tsv`.
      tokenizer: the model's tokenizer.
      max_seq_length: S; texts that do not fit are cut, see `truncate_pair`.
      labels: names of the classes in order; None: leave label_ids out.

    Returns:
      input_word_ids, input_mask, input_type_ids int32 [N, S]; label_ids int32 [N].

    Raises:
      UserError: a label is not among `labels` (names file and line), or S is below 5.
    """
    if max_seq_length < 5:
        raise UserError(f"max_seq_length should be at least 5; received {max_seq_length}.")
    all_a = tokenizer.encode_batch(examples.text_a)
    all_b = tokenizer.encode_batch(examples.text_b) if examples.text_b else [[]] * len(examples)
    word_ids = np.zeros((len(examples), max_seq_length), np.int32)
    mask, type_ids = np.zeros_like(word_ids), np.zeros_like(word_ids)
    for row, (tokens_a, tokens_b) in enumerate(zip(all_a, all_b)):
        tokens, first_length = _pack(tokenizer, tokens_a, tokens_b, max_seq_length)
        word_ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
        type_ids[row, first_length : len(tokens)] = 1
    arrays = {"input_word_ids": word_ids, "input_mask": mask, "input_type_ids": type_ids}
    return arrays if labels is None else {**arrays, "label_ids": _label_ids(examples, labels)}


def _label_ids(examples: Examples, labels: Sequence[str]) -> np.ndarray:
    if examples.labels is None:
        raise UserError(f"{examples.source} was read without labels; name its label column.")
    ids = {name: i for i, name in enumerate(labels)}
    for line, label in zip(examples.lines, examples.labels):
        if label not in ids:
            raise UserError(
                f"{examples.source}:{line}: the label {label!r} is not one of {', '.join(labels)}."
            )
    return np.array([ids[label] for label in examples.labels], np.int32)


@tf.autograph.experimental.do_not_convert  # No function here has anything to convert.
def classification_dataset(
    arrays: Mapping[str, np.ndarray],
    global_batch_size: int,
    *,
    seed: int = 0,
    training: bool = True,
    start_step: int = 0,
    input_context: tf.distribute.InputContext | None = None,
) -> tf.data.Dataset:
    """Batches of examples, in an order that can be entered at any step.

    Args:
      arrays: columns of N examples, as from `encode_classification`.
      global_batch_size: B, over all replicas.
      seed: the order of training is a function of (seed, epoch).
      training: infinite and shuffled; otherwise one pass in order, whose last batch is filled up
        with rows of weight 0.
      start_step: number of batches already used; the first batch is the one after them.
      input_context: number of this host among several, which gets its part of each global batch.

    Returns:
      Elements are dicts of the arrays' names and example_weights float32 [B] (1 real, 0 filler).
    """
    check_batch(global_batch_size, start_step)
    num_examples = len(arrays["input_word_ids"])
    tensors = {name: tf.constant(values) for name, values in arrays.items()}
    first, end = host_rows(global_batch_size, input_context)

    def take(rows: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = rows[first:end]
        is_real = rows < num_examples
        rows = tf.where(is_real, rows, 0)
        batch = {name: tf.gather(values, rows) for name, values in tensors.items()}
        return {**batch, "example_weights": tf.cast(is_real, tf.float32)}

    def epoch(index: tf.Tensor) -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices(permutation(num_examples, seed, index))

    if training:
        dataset = batch_epochs(epoch, num_examples, global_batch_size, start_step)
    else:
        num_batches = -(-num_examples // global_batch_size)
        numbers = tf.data.Dataset.range(num_batches * global_batch_size, output_type=tf.int32)
        dataset = numbers.batch(global_batch_size, drop_remainder=True).skip(start_step)
    return with_options(dataset.map(take))
