"""Texts in a tf.data.Dataset to pre-training examples and batches, without files in between.

    examples = pretraining_examples(documents, tokenizer, settings)
    write_records(examples, "records", tokenizer, settings)             # ../writer.py
    batches = pretraining_batches(examples.repeat(), 64, tokenizer, settings)

Documents are worked on in blocks, each by one call of the same graph; every random choice is a
function of the seed and the number of the block, so that nothing depends on parallelism. Needs
tensorflow_text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from data_pipeline.corpus.sentences import split_document
from data_pipeline.errors import UserError
from data_pipeline.pretraining.dataset import model_inputs
from data_pipeline.pretraining.dynamic_masking import DynamicMasking
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.tokenized import TokenizedDocuments
from data_pipeline.pretraining.without_records.segments import (
    Draws,
    make_pairs,
    pair_columns,
    shuffle,
)
from data_pipeline.pretraining.without_records.tokens import DocumentTokenizer
from data_pipeline.records.batches import host_rows, with_options
from data_pipeline.tokenizers.base import Tokenizer

BLOCK_BYTES = 1 << 20
_DOCUMENTS, _NEIGHBORS = 128, 8  # Largest and smallest number of documents in a block.
_PAIRS, _MASKS = 2, 3  # Salts of the seed; ../dataset.py has 0 and 1.
PADDED_COLUMNS = ("token_ids", "token_boundary")  # Of dynamic examples.


class ExampleMaker:
    """A function from blocks of documents to examples; it is made outside of graphs.

    Args:
      tokenizer: the tokenizer of the text.
      settings: the settings of the examples.

    Raises:
      UserError: settings.pack_documents, which only create_pretraining_data knows, or a vocabulary
        whose [PAD] is not its first piece.
    """

    def __init__(self, tokenizer: Tokenizer, settings: PretrainingSettings) -> None:
        if settings.pack_documents:
            raise UserError(
                "pack_documents=True is not supported for a dataset of text. Make records with "
                "create_pretraining_data --pack_documents."
            )
        if tokenizer.pad_id != 0:  # Zeros at the end of a row are what fills it up.
            raise UserError(
                f"{tokenizer.vocab_file}: [PAD] has the id {tokenizer.pad_id}, and a dataset of "
                "text needs 0. Make records with create_pretraining_data."
            )
        self._settings = settings
        self._to_ids = DocumentTokenizer(tokenizer)
        self._masker = DynamicMasking.of(settings, tokenizer)
        # Functions that are traced once, however many datasets are made of them.
        self._tokenizing, self._pairing, self._padding, self._masking = (
            tf.function(step, autograph=False)
            for step in (self._tokenize, self._make, self._pad, self._mask)
        )

    def __call__(self, blocks: tf.data.Dataset) -> tf.data.Dataset:
        """Examples of blocks.

        Args:
          blocks: elements are (number int64 [2], documents string [D]), a sentence on each line.
            What is made of a block is a function of the element, settings and tokenizer.

        Returns:
          Elements are the R > 0 examples of a copy of a block: columns of `pretraining_examples`,
          with R in front.
        """
        texts = blocks.map(self._tokenizing, num_parallel_calls=tf.data.AUTOTUNE)
        texts = texts.filter(lambda number, ids, *rest: tf.size(ids) > 0).flat_map(self._copies)
        examples = texts.map(self._pairing, num_parallel_calls=tf.data.AUTOTUNE)
        examples = examples.filter(lambda number, columns: tf.size(columns["num_tokens_a"]) > 0)
        if self._settings.masking == "dynamic":
            return examples.map(self._padding)
        return examples.map(self._masking, num_parallel_calls=tf.data.AUTOTUNE)

    def _tokenize(self, number: tf.Tensor, documents: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """A block's number and the fields of its `TokenizedDocuments`."""
        text = self._to_ids(documents)
        return number, *(getattr(text, field.name) for field in dataclasses.fields(text))

    def _copies(self, number: tf.Tensor, *text: tf.Tensor) -> tf.data.Dataset:
        """The copies of a block; numbers [group, block] become [group, block, copy]."""
        return tf.data.Dataset.range(self._settings.dupe_factor).map(
            lambda copy: (tf.concat([number, copy[None]], axis=0), *text)
        )

    def _make(
        self, number: tf.Tensor, *fields: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """The shuffled pairs of a copy, as columns of dynamic records."""
        settings, text = self._settings, TokenizedDocuments(*fields)
        draws = Draws(_key(settings.seed, _PAIRS, number))
        pairs = make_pairs(
            text,
            settings.sentence_objective,
            settings.max_num_tokens,
            settings.short_seq_prob,
            draws,
        )
        return number, pair_columns(text, shuffle(pairs, draws))

    def _pad(self, number: tf.Tensor, columns: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Columns of fixed lengths, which can be unbatched and batched again."""
        shape = [None, self._settings.max_num_tokens]
        padded = {name: columns[name].to_tensor(shape=shape) for name in PADDED_COLUMNS}
        return {**columns, **padded}

    def _mask(self, number: tf.Tensor, columns: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Columns of static records."""
        return self._masker(columns, _key(self._settings.seed, _MASKS, number))


def _key(seed: int, salt: int, numbers: tf.Tensor) -> tf.Tensor:
    """int64 [2]: a key of random numbers, a function of all arguments; numbers: int64 [3]."""
    key = tf.constant([seed, salt], tf.int64)
    for number in tf.unstack(numbers, num=3):
        key = tf.random.experimental.stateless_fold_in(key, number, alg="philox")
    return key


def _blocks(documents: tf.data.Dataset) -> tf.data.Dataset:
    """Neighboring documents in numbered blocks of about BLOCK_BYTES.

    At least _NEIGHBORS are together, so that a next-sentence pair finds another document.

        documents of 300 KB in runs of 8: 2.4 MB a run; a run begins at 0, 2.4, 4.8 MB, ... of text
        -> blocks 0, 2, 4, ... (by the MB that a run begins in), renumbered 0, 1, 2
    """

    def divide(some: tf.Tensor) -> tf.data.Dataset:
        sizes = tf.strings.length(some)
        before = tf.cumsum(tf.cast(sizes, tf.int64), exclusive=True)
        places = tf.range(tf.shape(some)[0])
        block = tf.gather(before, places // _NEIGHBORS * _NEIGHBORS) // BLOCK_BYTES
        found = tf.unique(block)
        return tf.data.Dataset.from_tensor_slices(found.y).map(
            lambda one: tf.boolean_mask(some, block == one)
        )

    blocks = documents.batch(_DOCUMENTS).flat_map(divide).enumerate()
    return blocks.map(lambda number, some: (tf.stack([0, number]), some))


@tf.autograph.experimental.do_not_convert
def pretraining_examples(
    documents: tf.data.Dataset,
    tokenizer: Tokenizer,
    settings: PretrainingSettings,
    language: str | None = None,
) -> tf.data.Dataset:
    """Examples as create_pretraining_data makes them: pairs of segments, and masks if static.

    Equal documents in equal order, settings and seed give equal examples. They are drawn from the
    distribution of the program's records; they are not those records, whose random numbers are
    NumPy's. The masks of dynamic examples are drawn by `pretraining_batches`, or when the records
    that `write_records` makes of them are read.

    Args:
      documents: scalar strings, UTF-8; documents without text give no example.
      tokenizer: see `loading.load_tokenizer`.
      settings: as for create_pretraining_data; copies (dupe_factor) of a block follow one another.
      language: ISO code of raw text, whose sentences are found as in the program's jsonl; that
        happens in Python, on one core of one process. None: each line is a sentence, and everything
        is one graph.

    Returns:
      Elements are single examples, dicts with the columns of `features.pretraining_schema`, int32
      and float32. All have fixed lengths: in dynamic examples token_ids and token_boundary are
      padded with zeros to `settings.max_num_tokens`; no text has the id 0.

    Raises:
      UserError: the elements of `documents` are not strings, or settings.pack_documents, which only
        create_pretraining_data knows.
    """
    spec = documents.element_spec
    if not isinstance(spec, tf.TensorSpec) or spec.dtype != tf.string or spec.shape.rank != 0:
        raise UserError(
            f"documents should be a dataset of scalar strings; received {spec}. Take the text, as "
            'in documents.map(lambda page: page["text"]), and do not batch it.'
        )
    if language is not None:
        documents = documents.map(
            lambda text: _in_lines(text, language), num_parallel_calls=tf.data.AUTOTUNE
        )
    examples = ExampleMaker(tokenizer, settings)(_blocks(documents))
    return with_options(examples.unbatch())


def _in_lines(text: tf.Tensor, language: str) -> tf.Tensor:
    """A raw document (string []) with a sentence on each line."""

    def split(content: bytes) -> bytes:
        raw = content.decode("utf-8", errors="replace")
        return "\n".join(split_document(raw, language)).encode("utf-8")

    return tf.ensure_shape(tf.numpy_function(split, [text], tf.string), [])


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
    """Examples to batches like those of `pretraining.dataset.pretraining_dataset`.

    Args:
      examples: single examples, as `pretraining_examples` makes them, in the order of training and
        repeated as often as needed. Those that do not fill a batch are left out.
      batch_size: B, over all replicas.
      tokenizer, settings: tokenizer and settings of the examples.
      seed: dynamic examples are masked as a function of (seed, number of the batch).
      start_step: number of the first batch; `examples` begin with it.
      input_context: number of this host among several. All give the same examples; each gets its
        part of each batch, and masks nothing else.

    Returns:
      Batches, see `pretraining.dataset.pretraining_dataset`.
    """
    masker = DynamicMasking.of(settings, tokenizer)
    first, end = host_rows(batch_size, input_context)
    rows = (first, end, batch_size) if input_context else None

    def to_batch(number: tf.Tensor, columns: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        columns = {name: values[first:end] for name, values in columns.items()}
        if settings.masking == "dynamic":
            key = tf.random.experimental.stateless_fold_in(tf.constant([seed, 1], tf.int64), number)
            columns = masker(without_padding(columns), key, rows)
        return model_inputs(columns)

    batches = examples.batch(batch_size, drop_remainder=True).enumerate(start_step)
    return with_options(batches.map(to_batch, num_parallel_calls=tf.data.AUTOTUNE))


def without_padding(
    columns: Mapping[str, tf.Tensor],
) -> dict[str, tf.Tensor | tf.RaggedTensor]:
    """Columns of dynamic records, as from `features.parse`, of the columns of padded examples."""
    lengths = tf.math.count_nonzero(columns["token_ids"], axis=1)
    rows = {name: tf.RaggedTensor.from_tensor(columns[name], lengths) for name in PADDED_COLUMNS}
    return {**columns, **rows}
