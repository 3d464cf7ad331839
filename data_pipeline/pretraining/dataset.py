"""Reads records as batches: tf.data inputs that can be resumed and shared by several hosts."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from data_pipeline.errors import UserError
from data_pipeline.pretraining.dynamic_masking import GROUP, DynamicMasking
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.records import features, record_folder
from data_pipeline.records.batches import check_batch, host_rows, map_host_rows, with_options
from data_pipeline.records.order import RecordOrder, batch_epochs
from data_pipeline.tokenizers.loading import load_tokenizer

SHUFFLE_WINDOW = 16_384  # 16 MB of dynamic records of 512 tokens.


def model_inputs(columns: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Renames the columns of B records to the model's inputs and labels."""
    labels = columns["next_sentence_labels"][:, 0]  # [B]
    questions = (name for name in columns if name.startswith("span_"))
    return {
        "input_word_ids": columns["input_ids"],
        "input_mask": columns["input_mask"],
        "input_type_ids": columns["segment_ids"],
        "masked_lm_positions": columns["masked_lm_positions"],
        "masked_lm_ids": columns["masked_lm_ids"],
        "masked_lm_weights": columns["masked_lm_weights"],
        "sentence_order_labels": labels,
        "example_weights": tf.ones_like(labels, tf.float32),
        **{name: columns[name] for name in questions},
    }


def _shards(manifest: dict[str, Any]) -> tuple[list[str], list[int]]:
    """Paths of the files that hold records, and the number of records in each."""
    counts = [entry["num_records"] for entry in manifest["files"]]
    return record_folder.record_files(manifest), list(filter(None, counts))


def _training_records(
    manifest: dict[str, Any],
    global_batch_size: int,
    examples_before: int,
    seed: int,
    read: Callable[[tf.Tensor], tf.data.Dataset] = tf.data.TFRecordDataset,
) -> tf.data.Dataset:
    """Batches [B] of training records, without the first `examples_before`; `read` maps a path to
    a dataset with one element per record.
    """
    paths, counts = _shards(manifest)
    order = RecordOrder(paths, counts, min(sum(counts), SHUFFLE_WINDOW), seed, read)
    return batch_epochs(
        order.epoch, sum(counts), global_batch_size, examples_before, order.rest_of_epoch
    )


def source_of_batch(data: str, global_batch_size: int, examples_before: int, *, seed: int) -> str:
    """The names, separated by commas, of the files with the records of a `pretraining_dataset`
    batch, given the number of examples in the batches before it.
    """

    def names(path: tf.Tensor) -> tf.data.Dataset:
        return tf.data.TFRecordDataset(path).map(lambda unused_record: path)

    # Repeats the order of training with paths in place of records.
    manifest = record_folder.read_manifest(data)
    batches = _training_records(manifest, global_batch_size, examples_before, seed, names)
    paths = {path.decode("utf-8") for path in next(iter(batches)).numpy()}
    return ", ".join(sorted(map(os.path.basename, paths)))


def record_parser(
    manifest: dict[str, Any], masker: DynamicMasking | None, seed: int
) -> Callable[..., dict[str, tf.Tensor]]:
    """Returns the last step of reading: a function (number of the batch, some of its serialized
    records, number of the first of them) -> model inputs. `masker` is for dynamic records, whose
    masks depend on the seed and the batch.
    """
    schema = features.readable_schema(
        manifest["masking"], manifest["max_seq_length"], manifest["max_predictions"]
    )

    def parse(number: tf.Tensor, serialized: tf.Tensor, first_row: int = 0) -> dict[str, tf.Tensor]:
        columns = features.parse(schema, serialized)
        return model_inputs(masker(columns, seed, number, first_row) if masker else columns)

    return parse


def static_masks(manifest: dict[str, Any]) -> UserError:
    """The error of recurring spans in records with static masks."""
    return UserError(
        f"{manifest['directory']} has static masks, but recurring spans must be hidden before "
        "words are masked. Make the records with --masking=dynamic."
    )


def _parser(
    manifest: dict[str, Any], seed: int, span_mask_share: float
) -> Callable[..., dict[str, tf.Tensor]]:
    """The `record_parser` of a folder."""
    if manifest["masking"] == "static":
        if span_mask_share:
            raise static_masks(manifest)
        return record_parser(manifest, None, seed)
    tokenizer = load_tokenizer(
        os.path.join(manifest["directory"], manifest["vocab_file"]), **manifest["tokenizer"]
    )
    if tokenizer.fingerprint != manifest["vocab_fingerprint"]:
        raise UserError(
            f"{tokenizer.vocab_file} is not the vocabulary that the records next to it were made "
            "with. Copy the folder again, or make the data again."
        )
    settings = PretrainingSettings.from_manifest(manifest)
    masker = DynamicMasking(settings, tokenizer, span_mask_share)
    return record_parser(manifest, masker, seed)


def _evaluation_batches(
    manifest: dict[str, Any],
    global_batch_size: int,
    input_context: tf.distribute.InputContext | None,
    span_mask_share: float,
) -> tf.data.Dataset:
    """Batches of one pass, filled up with rows of weight 0.

    200 records: groups of 64, 64, 64, 8; two hosts have 128 and 72 records. In batches of 32, 16
    rows per host, they need 8 and 5 batches -> both yield 8, the second with 56 rows of weight 0.
    """
    # Masks are drawn for groups of records, which are assigned to hosts in turn, so that masks
    # depend on neither the batch size nor the number of hosts.
    parse = _parser(manifest, 0, span_mask_share)
    paths, counts = _shards(manifest)
    hosts = input_context or tf.distribute.InputContext()
    number, num_hosts = hosts.input_pipeline_id, hosts.num_input_pipelines
    first, end = host_rows(global_batch_size, input_context)
    num_records = sum(counts)
    starts = range(0, num_records, GROUP)
    sizes = [min(GROUP, num_records - start) for start in starts]
    num_batches = _num_evaluation_batches(sizes, global_batch_size, num_hosts)
    num_missing = num_batches * (end - first) - sum(sizes[number::num_hosts])
    groups = tf.data.TFRecordDataset(paths).batch(GROUP).enumerate()
    own = groups.shard(num_hosts, number).map(lambda *group: (group, 1.0))
    # All hosts must end at the same step: hosts with fewer rows repeat some with weight 0.
    fillers = groups.take(1).repeat(math.ceil(num_missing / sizes[0]))
    fillers = fillers.map(lambda *group: (group, 0.0))

    def to_rows(group: tuple[tf.Tensor, tf.Tensor], weight: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = parse(*group)
        weights = (name for name in rows if name.endswith("_weights"))
        return {**rows, **{name: rows[name] * weight for name in weights}}

    rows = own.concatenate(fillers).map(to_rows, num_parallel_calls=tf.data.AUTOTUNE)
    return rows.rebatch(end - first, drop_remainder=True).take(num_batches)


def _num_evaluation_batches(group_sizes: list[int], global_batch_size: int, num_hosts: int) -> int:
    """Number of batches that the host with the most rows needs; all hosts yield this number."""
    numbers = []
    for host in range(num_hosts):
        first, end = host_rows(global_batch_size, tf.distribute.InputContext(num_hosts, host))
        numbers.append(math.ceil(sum(group_sizes[host::num_hosts]) / (end - first)))
    return max(numbers)


@tf.autograph.experimental.do_not_convert  # No function here needs conversion.
def pretraining_dataset(
    data: str,
    global_batch_size: int,
    *,
    seed: int = 0,
    training: bool = True,
    start_step: int = 0,
    examples_before: int | None = None,
    vocab_fingerprint: str | None = None,
    max_seq_length: int | None = None,
    input_context: tf.distribute.InputContext | None = None,
    manifest: dict[str, Any] | None = None,
    span_mask_share: float = 0.0,
) -> tf.data.Dataset:
    """Batches of pre-training records. Dynamic records are masked here: with different masks in
    each epoch of training, and with the same masks in every evaluation.

    Args:
      data: folder written by create_pretraining_data.
      global_batch_size: B, over all replicas.
      seed: the order of training is a function of (seed, epoch), the masks of dynamic records of
        (seed, number of the batch).
      training: infinite and shuffled; otherwise one pass in the order of the files, whose last
        batch is filled up with rows of weight 0.
      start_step: number of batches already used; the first batch is the one after them.
      examples_before: number of examples in these training batches; None: B each.
      vocab_fingerprint: expected SHA-256 of the vocabulary, or None.
      max_seq_length: expected S, or None.
      input_context: identifies this host among several. It gets and masks only its part of each
        global batch; together the hosts have the same rows as a single host.
      manifest: the folder's manifest from `verify_records`; None: it is verified here.
      span_mask_share: [MASK]s that hide recurring spans, as a share of the tokens; for dynamic
        records only.

    Returns:
      Elements are dicts: input_word_ids, input_mask, input_type_ids int32 [B, S];
      masked_lm_positions, masked_lm_ids int32 [B, P]; masked_lm_weights float32 [B, P];
      sentence_order_labels int32 [B] (0 in order, 1 swapped); example_weights float32 [B] (1 real,
      0 filler, whose other weights are 0 too; always 1 in training). With a span_mask_share also
      span_starts, span_ends int32 [B, Q]; span_weights float32 [B, Q].
    """
    check_batch(global_batch_size, start_step)
    manifest = manifest or record_folder.verify_records(data)
    if vocab_fingerprint and vocab_fingerprint != manifest["vocab_fingerprint"]:
        raise UserError(
            f"{data} was made with another vocabulary (fingerprint "
            f"{manifest['vocab_fingerprint'][:12]}, in use {vocab_fingerprint[:12]}). Use "
            f"{manifest['vocab_file']} of that folder, or make the data again."
        )
    if max_seq_length and max_seq_length != manifest["max_seq_length"]:
        raise UserError(
            f"{data} was made with --max_seq_length={manifest['max_seq_length']}, but "
            f"{max_seq_length} was requested. Use the former, or make the data again."
        )
    if training:
        if examples_before is None:
            examples_before = start_step * global_batch_size
        records = _training_records(manifest, global_batch_size, examples_before, seed)
        parse = _parser(manifest, seed, span_mask_share)
        # Each host parses and masks its own rows, with the same result as on a single host.
        group = GROUP if manifest["masking"] == "dynamic" else 1
        dataset = map_host_rows(records, parse, global_batch_size, start_step, input_context, group)
    else:
        dataset = _evaluation_batches(manifest, global_batch_size, input_context, span_mask_share)
        dataset = dataset.skip(start_step)
    return with_options(dataset)
