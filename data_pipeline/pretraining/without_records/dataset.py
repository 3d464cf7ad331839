"""Pre-training examples and batches from texts in a tf.data.Dataset, without files in between.

    examples = pretraining_examples(documents, tokenizer, settings)
    write_records(examples, "records", tokenizer, settings)             # ../writer.py
    batches = pretraining_batches(examples.repeat(), 64, tokenizer, settings)

Documents are processed in blocks, in Python; every random choice is a function of the seed and the
number of the block, so that nothing depends on parallelism.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import tensorflow as tf

from data_pipeline.corpus.sentences import split_document
from data_pipeline.errors import UserError
from data_pipeline.pretraining.dataset import model_inputs
from data_pipeline.pretraining.dynamic_masking import GROUP, DynamicMasking
from data_pipeline.pretraining.examples import BlockExamples
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.records import features
from data_pipeline.records.batches import map_host_rows, with_options
from data_pipeline.records.python_calls import items_until_exit
from data_pipeline.tokenizers.base import Tokenizer

BLOCK_BYTES = 1 << 20
# Largest and smallest number of documents in a block: a next-sentence pair needs another document.
_DOCUMENTS, _NEIGHBORS = 128, 8
PADDED_COLUMNS = ("token_ids", "token_boundary")  # Columns that are padded in dynamic examples.


def _blocks(documents: tf.data.Dataset) -> tf.data.Dataset:
    """Groups consecutive documents into numbered blocks of about BLOCK_BYTES.

    documents of 300 KB in runs of 8: 2.4 MB per run; runs begin at 0, 2.4, 4.8 MB, ... of text
    -> blocks 0, 2, 4, ... (the MB in which a run begins), renumbered 0, 1, 2
    """

    def divide(some: tf.Tensor) -> tf.data.Dataset:
        sizes = tf.strings.length(some)
        # In int64: 128 documents may hold more bytes than int32 can count.
        before = tf.cumsum(tf.cast(sizes, tf.int64), exclusive=True)
        places = tf.range(tf.shape(some)[0])
        block = tf.gather(before, places // _NEIGHBORS * _NEIGHBORS) // BLOCK_BYTES
        found = tf.unique(block)
        return tf.data.Dataset.from_tensor_slices(found.y).map(
            lambda one: tf.boolean_mask(some, block == one)
        )

    return documents.batch(_DOCUMENTS).flat_map(divide).enumerate()


@tf.autograph.experimental.do_not_convert  # No function here needs conversion.
def pretraining_examples(
    documents: tf.data.Dataset,
    tokenizer: Tokenizer,
    settings: PretrainingSettings,
    language: str | None = None,
) -> tf.data.Dataset:
    """Makes examples like create_pretraining_data: pairs of segments, and masks if static.

    Equal documents in equal order, settings and seed give equal examples. They are made by the
    program's functions, in one Python process, but differ from its records, as blocks are cut at
    other places. The masks of dynamic examples are drawn by `pretraining_batches`, or, if
    `write_records` stores them, when the records are read.

    Args:
      documents: scalar strings, UTF-8; documents without text give no example.
      tokenizer: see `loading.load_tokenizer`.
      settings: as for create_pretraining_data; the copies (dupe_factor) of a block are consecutive.
      language: ISO code of the language of raw text, which is split into sentences as in the
        program's jsonl. None: each line is a sentence.

    Returns:
      Elements are single examples, dicts with the columns of `features.pretraining_schema`, int32
      and float32. All have fixed lengths: in dynamic examples token_ids and token_boundary are
      padded with zeros to `settings.max_record_tokens`; no text has the id 0.

    Raises:
      UserError: the elements of `documents` are not strings, or the vocabulary's [PAD] is not its
        first piece.
    """
    spec = documents.element_spec
    if not isinstance(spec, tf.TensorSpec) or spec.dtype != tf.string or spec.shape.rank != 0:
        raise UserError(
            f"documents should be a dataset of scalar strings; received {spec}. Take the text, as "
            'in documents.map(lambda page: page["text"]), and do not batch it.'
        )
    if tokenizer.pad_id != 0:  # Rows are padded with zeros.
        raise UserError(
            f"{tokenizer.vocab_file}: [PAD] has the id {tokenizer.pad_id}, but a dataset of "
            "text needs 0. Make records with create_pretraining_data."
        )
    schema = features.pretraining_schema(
        settings.masking, settings.max_seq_length, settings.max_predictions_per_seq
    )

    def make(number: int, texts: np.ndarray) -> Iterator[list[bytes]]:
        sentences = (_sentences(text, language) for text in texts)
        block = BlockExamples(sentences, settings, tokenizer, (0, int(number)))
        for copy in range(settings.dupe_factor):
            if serialized := block.serialized(copy):
                yield serialized

    def parse(serialized: tf.Tensor) -> dict[str, tf.Tensor]:
        columns = features.parse(schema, serialized)
        if settings.masking == "dynamic":
            shape = [None, settings.max_record_tokens]
            columns |= {name: columns[name].to_tensor(shape=shape) for name in PADDED_COLUMNS}
        return columns

    copies = _blocks(documents).flat_map(
        lambda *block: tf.data.Dataset.from_generator(
            items_until_exit(make), output_signature=tf.TensorSpec([None], tf.string), args=block
        )
    )
    return with_options(copies.map(parse).unbatch())


def _sentences(text: bytes, language: str | None) -> list[str]:
    """The sentences of a document; its lines if `language` is None."""
    content = text.decode("utf-8", errors="replace")
    return content.split("\n") if language is None else split_document(content, language)


@tf.autograph.experimental.do_not_convert
def pretraining_batches(
    examples: tf.data.Dataset,
    batch_size: int,
    tokenizer: Tokenizer,
    settings: PretrainingSettings,
    *,
    seed: int = 0,
    start_step: int = 0,
    input_context: tf.distribute.InputContext | None = None,
) -> tf.data.Dataset:
    """Makes batches from examples, like those of `pretraining.dataset.pretraining_dataset`.

    Args:
      examples: single examples, as `pretraining_examples` makes them, in the order of training and
        repeated as often as needed. An incomplete last batch is dropped.
      batch_size: B, over all replicas.
      tokenizer: the tokenizer of the examples.
      settings: the settings of the examples.
      seed: dynamic examples are masked as a function of (seed, number of the batch).
      start_step: number of the first batch; `examples` begin with it.
      input_context: identifies this host among several. All hosts must pass the same examples; each
        gets and masks its part of each batch.

    Returns:
      Batches, see `pretraining.dataset.pretraining_dataset`.
    """
    batches = examples.batch(batch_size, drop_remainder=True)
    masker = DynamicMasking(settings, tokenizer) if settings.masking == "dynamic" else None

    def convert(
        number: tf.Tensor, columns: dict[str, tf.Tensor], first_row: int
    ) -> dict[str, tf.Tensor]:
        if masker:
            columns = masker(without_padding(columns), seed, number, first_row)
        return model_inputs(columns)

    group = GROUP if masker else 1
    return with_options(
        map_host_rows(batches, convert, batch_size, start_step, input_context, group)
    )


def without_padding(columns: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor | tf.RaggedTensor]:
    """Converts columns of padded examples to those of dynamic records, as in `features.parse`."""
    lengths = tf.math.count_nonzero(columns["token_ids"], axis=1)
    rows = {name: tf.RaggedTensor.from_tensor(columns[name], lengths) for name in PADDED_COLUMNS}
    return {**columns, **rows}
