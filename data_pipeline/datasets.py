"""Records to batches: tf.data inputs whose order is a function of (seed, epoch) and can be resumed.

The order does not depend on the number of reader threads, on tf.random.set_seed or on TensorFlow's
version: shards and windows of records are permuted with stateless random numbers.
"""

from __future__ import annotations

import os
from typing import Any, Callable

import tensorflow as tf

from data_pipeline import features, records
from data_pipeline.dynamic_masking import DynamicMasking
from data_pipeline.errors import UserError
from data_pipeline.pretraining_settings import PretrainingSettings
from data_pipeline.tokenization import load_tokenizer

SHUFFLE_WINDOW = 16_384
_READ_FILES = 16
_MANY_EPOCHS = 1 << 40


def permutation(size: tf.Tensor, seed: int, *indices: tf.Tensor) -> tf.Tensor:
    """int64 [size]: a random order that depends on the arguments only."""
    key = tf.constant([seed, 0], tf.int64)
    for index in indices:
        key = tf.random.experimental.stateless_fold_in(key, index, alg="philox")
    draws = tf.random.stateless_uniform([size], key, 0, 1 << 62, tf.int64, alg="philox")
    return tf.argsort(draws, stable=True)


def batch_epochs(
    epoch: Callable[[tf.Tensor], tf.data.Dataset],
    num_examples: int,
    batch_size: int,
    start_step: int,
) -> tf.data.Dataset:
    """Infinite batches over epoch(0), epoch(1), ..., from global batch `start_step` on.

    Batches run across the ends of epochs, so none is short; only the first epoch is skipped into.
    """
    first, offset = divmod(start_step * batch_size, num_examples)

    def one_epoch(index: tf.Tensor) -> tf.data.Dataset:
        return epoch(index).skip(tf.where(index == first, tf.constant(offset, tf.int64), 0))

    dataset = tf.data.Dataset.range(first, _MANY_EPOCHS).flat_map(one_epoch)
    return dataset.batch(batch_size, drop_remainder=True)


def check_batch(global_batch_size: int, start_step: int) -> None:
    """Raises UserError for impossible sizes."""
    if global_batch_size < 1:
        raise UserError(f"The batch size should be at least 1; received {global_batch_size}.")
    if start_step < 0:
        raise UserError(f"start_step should not be negative; received {start_step}.")


def pad_batch(batch: dict[str, tf.Tensor], batch_size: int) -> dict[str, tf.Tensor]:
    """Repeats the first row up to `batch_size` rows, with zeros in example_weights for fillers."""
    size = tf.shape(batch["example_weights"])[0]
    rows = tf.where(tf.range(batch_size) < size, tf.range(batch_size), 0)  # [B]
    padded = {name: tf.gather(values, rows) for name, values in batch.items()}
    is_real = tf.cast(tf.range(batch_size) < size, tf.float32)  # [B]
    return {**padded, "example_weights": padded["example_weights"] * is_real}


def with_options(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Deterministic order, also when several workers share the data; one batch ahead or more."""
    options = tf.data.Options()
    options.deterministic = True
    policy = tf.data.experimental.AutoShardPolicy.DATA
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.prefetch(tf.data.AUTOTUNE).with_options(options)


def check_compatible(
    data: str,
    manifest: dict,
    vocab_fingerprint: str | None = None,
    max_seq_length: int | None = None,
) -> None:
    """Raises UserError when records do not fit the vocabulary or the sequence length in use."""
    if vocab_fingerprint and vocab_fingerprint != manifest["vocab_fingerprint"]:
        raise UserError(
            f"{data} was made with another vocabulary (fingerprint "
            f"{manifest['vocab_fingerprint'][:12]}, in use {vocab_fingerprint[:12]}). Use "
            f"{manifest['vocab_file']} of that folder, or make the data again."
        )
    if max_seq_length and max_seq_length != manifest["max_seq_length"]:
        raise UserError(
            f"{data} was made with --max_seq_length={manifest['max_seq_length']}, but "
            f"{max_seq_length} is asked for. Use the former, or make the data again."
        )


def model_inputs(columns: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Column names of records to input names of models."""
    labels = columns["next_sentence_labels"][:, 0]  # [B]
    return {
        "input_word_ids": columns["input_ids"],
        "input_mask": columns["input_mask"],
        "input_type_ids": columns["segment_ids"],
        "masked_lm_positions": columns["masked_lm_positions"],
        "masked_lm_ids": columns["masked_lm_ids"],
        "masked_lm_weights": columns["masked_lm_weights"],
        "sentence_order_labels": labels,
        "example_weights": tf.ones_like(labels, tf.float32),
    }


def _shuffled_epoch(
    files: list[str],
    window: int,
    seed: int,
    epoch: tf.Tensor,
    read: Callable[[tf.Tensor], tf.data.Dataset] = tf.data.TFRecordDataset,
) -> tf.data.Dataset:
    """Serialized records of one epoch: shards in random order, interleaved, shuffled in windows."""
    order = permutation(len(files), seed, epoch, tf.constant(-1, tf.int64))
    dataset = tf.data.Dataset.from_tensor_slices(tf.gather(files, order)).interleave(
        read,
        cycle_length=min(len(files), _READ_FILES),
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )

    def shuffle(index: tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
        return tf.gather(batch, permutation(tf.shape(batch)[0], seed, epoch, index))

    return dataset.batch(window).enumerate().map(shuffle).prefetch(1).unbatch()


def source_of_batch(data: str, global_batch_size: int, step: int, *, seed: int) -> str:
    """Names of the files that `pretraining_dataset` reads the batch of a step (1-based) from."""
    files, manifest = records.record_files(data), records.read_manifest(data)
    num_records = manifest["num_records"]

    def names(path: tf.Tensor) -> tf.data.Dataset:
        return tf.data.TFRecordDataset(path).map(lambda unused_record: path)

    batches = batch_epochs(
        lambda epoch: _shuffled_epoch(files, min(num_records, SHUFFLE_WINDOW), seed, epoch, names),
        num_records,
        global_batch_size,
        step - 1,
    )
    paths = {path.decode("utf-8") for path in next(iter(batches)).numpy()}
    return ", ".join(sorted(map(os.path.basename, paths)))


def _masker(manifest: dict[str, Any]) -> DynamicMasking:
    """How the dynamic records of a folder are masked."""
    tokenizer = load_tokenizer(
        os.path.join(manifest["directory"], manifest["vocab_file"]), **manifest["tokenizer"]
    )
    if tokenizer.fingerprint != manifest["vocab_fingerprint"]:
        raise UserError(
            f"{tokenizer.vocab_file} is not the vocabulary that the records beside it were made "
            "with. Copy the folder again, or make the data again."
        )
    return DynamicMasking.of(PretrainingSettings.from_manifest(manifest), tokenizer)


def _batch_parser(
    manifest: dict[str, Any], seed: int
) -> Callable[[tf.Tensor, tf.Tensor], dict[str, tf.Tensor]]:
    """(number of the batch int64, serialized [B]) -> a batch; the masks are functions of both."""
    schema = features.readable_schema(
        manifest["masking"], manifest["max_seq_length"], manifest["max_predictions"]
    )
    if manifest["masking"] == "static":
        return lambda unused_number, serialized: model_inputs(features.parse(schema, serialized))
    masker = _masker(manifest)

    def parse(number: tf.Tensor, serialized: tf.Tensor) -> dict[str, tf.Tensor]:
        key = tf.random.experimental.stateless_fold_in(tf.constant([seed, 1], tf.int64), number)
        return model_inputs(masker(features.parse(schema, serialized), key))

    return parse


@tf.autograph.experimental.do_not_convert  # No function here has anything to convert.
def pretraining_dataset(
    data: str,
    global_batch_size: int,
    *,
    seed: int = 0,
    training: bool = True,
    start_step: int = 0,
    vocab_fingerprint: str | None = None,
    max_seq_length: int | None = None,
) -> tf.data.Dataset:
    """Batches of pre-training records.

    Dynamic records are masked here: afresh in each epoch of training, always alike otherwise.

    Args:
      data: folder written by create_pretraining_data.
      global_batch_size: B, over all replicas.
      seed: the order of training is a function of (seed, epoch), the masks of dynamic records of
        (seed, number of the batch).
      training: infinite and shuffled; otherwise one pass in the order of the files, whose last
        batch is filled up with rows of weight 0.
      start_step: number of batches already used; the data go on exactly there.
      vocab_fingerprint: expected SHA-256 of the vocabulary, or None.
      max_seq_length: expected S, or None.

    Returns:
      Elements are dicts: input_word_ids, input_mask, input_type_ids int32 [B, S];
      masked_lm_positions, masked_lm_ids int32 [B, P]; masked_lm_weights float32 [B, P];
      sentence_order_labels int32 [B] (0 in order, 1 swapped); example_weights float32 [B] (1 real,
      0 filler; always 1 in training).

    Raises:
      UserError: the folder, its manifest or a file of it is missing, or does not fit.
    """
    check_batch(global_batch_size, start_step)
    manifest = records.verify_records(data)
    check_compatible(data, manifest, vocab_fingerprint, max_seq_length)
    files, num_records = records.record_files(data), manifest["num_records"]
    if training:
        parse = _batch_parser(manifest, seed)
        window = min(num_records, SHUFFLE_WINDOW)
        dataset = batch_epochs(
            lambda epoch: _shuffled_epoch(files, window, seed, epoch),
            num_records,
            global_batch_size,
            start_step,
        )
    else:
        parse = _batch_parser(manifest, seed=0)
        dataset = tf.data.TFRecordDataset(files).batch(global_batch_size).skip(start_step)

    def to_batch(number: tf.Tensor, serialized: tf.Tensor) -> dict[str, tf.Tensor]:
        batch = parse(number, serialized)
        return batch if training else pad_batch(batch, global_batch_size)

    dataset = dataset.enumerate(start_step)
    return with_options(dataset.map(to_batch, num_parallel_calls=tf.data.AUTOTUNE))
