"""Masks batches of dynamic records during training: masking.py in a tf.data pipeline."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from data_pipeline.pretraining.columns import ColumnMaker
from data_pipeline.pretraining.segments import PairMaker, Pairs, swapped
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.span_questions import most_answers
from data_pipeline.pretraining.tokenized import TokenizedDocuments
from data_pipeline.records import features
from data_pipeline.records.python_calls import until_exit
from data_pipeline.tokenizers.base import Tokenizer

# The rows of a batch are masked in groups. Each group has a generator seeded with the training seed
# and the numbers of batch and group. So a resumed run draws the same masks, and several hosts, each
# masking the groups of its own rows, produce the same batches as a single host.
GROUP = 64
# How masks and orders are drawn, so that runs can detect a version that draws them differently.
DRAWS = "numpy, groups of 64 rows"
# Separates these generators from those that make records, whose seeds are also numbers.
_MASK_SPAWN_KEY = (1,)
_UNUSED = np.zeros(1, np.int64)  # For boundaries, which masking does not use.


class DynamicMasking:
    """Converts batches of dynamic records, made with this tokenizer, to the columns of static
    records, and with `span_mask_share` also to those of `features.question_schema`.
    """

    def __init__(
        self, settings: PretrainingSettings, tokenizer: Tokenizer, span_mask_share: float = 0.0
    ) -> None:
        length = settings.max_seq_length
        self._settings, self._mask_shares = settings, settings.mask_shares
        self._maker = ColumnMaker(settings, tokenizer, span_mask_share)
        self._outputs = [
            *features.readable_schema("static", length, settings.max_predictions_per_seq)
        ]
        if span_mask_share:
            self._outputs += features.question_schema(most_answers(span_mask_share, length))

    def __call__(
        self,
        columns: Mapping[str, tf.Tensor | tf.RaggedTensor],
        seed: int,
        number: tf.Tensor,
        first_row: int = 0,
    ) -> dict[str, tf.Tensor]:
        """Masks R dynamic records (`features.parse`), inside or outside of a graph; returns int32
        [R, S], [R, P] and [R, 1], float32 masked_lm_weights [R, P]. `number` (int64) is the number
        of the batch; `first_row` is the first of these rows in the batch, a multiple of GROUP.
        """
        ids = columns["token_ids"]
        # As returned by `features.parse`.
        dtypes = [tf.float32 if each.dtype == "float32" else tf.int32 for each in self._outputs]

        def mask(number: np.ndarray, *records: np.ndarray) -> list[np.ndarray]:
            # The seed may be negative, which NumPy generators do not allow.
            found = self._mask((seed % (1 << 64), int(number), first_row // GROUP), *records)
            names = (output.name for output in self._outputs)
            return [found[name].astype(dtype.name) for name, dtype in zip(names, dtypes)]

        arrays = tf.numpy_function(
            until_exit(mask),
            [
                number,
                ids.values,
                columns["token_boundary"].values,
                ids.row_lengths(),
                columns["num_tokens_a"][:, 0],
                columns["next_sentence_labels"][:, 0],
            ],
            dtypes,
        )
        # numpy_function does not set shapes, but XLA needs fixed ones.
        num_rows = columns["num_tokens_a"].shape[0]
        return {
            output.name: tf.ensure_shape(array, [num_rows, output.length])
            for output, array in zip(self._outputs, arrays)
        }

    def _mask(
        self,
        key: tuple[int, int, int],
        ids: np.ndarray,
        boundary: np.ndarray,
        lengths: np.ndarray,
        length_a: np.ndarray,
        labels: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """The columns of static records, see `ColumnMaker.masked`. `key`: seed, number of the batch
        and number of the first group; ids, boundary: int32 [T] of all records; lengths: int64 [R];
        length_a, labels: int32 [R].
        """
        starts, length_a = np.cumsum(lengths) - lengths, length_a.astype(np.int64)
        pairs = Pairs(starts, length_a, starts + length_a, lengths - length_a, labels)
        text = TokenizedDocuments(ids, _UNUSED, _UNUSED, boundary > 0)
        seed, number, first_group = key
        parts = []
        for group, row in enumerate(range(0, len(pairs), GROUP), first_group):
            entropy = np.random.SeedSequence((seed, number, group), spawn_key=_MASK_SPAWN_KEY)
            rng = np.random.default_rng(entropy)
            some = pairs.take(slice(row, row + GROUP))
            if self._settings.segments == "dynamic":
                some = self._divided(ids, boundary, some, rng)
            elif self._settings.sentence_objective == "sop":
                some = swapped(some, rng)
            parts.append(self._maker.masked(text, some, rng, self._mask_shares.at(number)))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _divided(
        self, ids: np.ndarray, boundary: np.ndarray, chunks: Pairs, rng: np.random.Generator
    ) -> Pairs:
        """Divides consecutive chunks, stored as segment A, into pairs of segments."""
        first, end = chunks.start_a[0], chunks.start_a[-1] + chunks.length_a[-1]
        sentences = np.append(np.flatnonzero(boundary[first:end] > 1), end - first)
        documents = np.searchsorted(sentences, np.append(chunks.start_a, end) - first)
        text = TokenizedDocuments(ids[first:end], sentences, documents, boundary[first:end] > 0)
        maker = PairMaker(text, self._settings.sentence_objective, self._settings.max_num_tokens, 0)
        pairs = maker.divide_documents(rng)
        return dataclasses.replace(
            pairs, start_a=pairs.start_a + first, start_b=pairs.start_b + first
        )
