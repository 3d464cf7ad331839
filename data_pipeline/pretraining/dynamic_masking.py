"""Masks drawn while training, in a TensorFlow graph: the distributions of masking.py.

All choices of a batch are functions of one seed, so that a resumed run draws them again. They are
drawn for the whole batch, of which a host masks its own rows (`Rows`): several hosts give the same
batches as one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from data_pipeline.pretraining import masking
from data_pipeline.pretraining.dynamic_ngrams import choose_ngrams, positions_of
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers.base import Tokenizer

# Rows of a larger batch: (first row, row after the last or None for the end, size of that batch).
Rows = tuple[int, int | None, int | tf.Tensor]


@dataclasses.dataclass(frozen=True, eq=False)
class DynamicMasking:
    """A function from batches of dynamic records to masked batches.

    Attributes:
      rule: the rule by which tokens are chosen and replaced.
      max_seq_length: S.
      cls_id, sep_id: ids of [CLS] and [SEP].
      swaps: whether half of the pairs are swapped here (sentence order).
    """

    rule: masking.MaskingRule
    max_seq_length: int
    cls_id: int
    sep_id: int
    swaps: bool

    @classmethod
    def of(cls, settings: PretrainingSettings, tokenizer: Tokenizer) -> DynamicMasking:
        """The masking of records with these settings."""
        return cls(
            rule=settings.masking_rule(tokenizer),
            max_seq_length=settings.max_seq_length,
            cls_id=tokenizer.cls_id,
            sep_id=tokenizer.sep_id,
            swaps=settings.sentence_objective == "sop",
        )

    def __call__(
        self,
        columns: Mapping[str, tf.Tensor | tf.RaggedTensor],
        seed: tf.Tensor,
        rows: Rows | None = None,
    ) -> dict[str, tf.Tensor]:
        """The columns of static records.

        Args:
          columns: columns of B dynamic records, see `features.parse`.
          seed: int64 [2].
          rows: (first, end, size): the records are these rows of a larger batch, and are masked as
            in it. None: they are a whole batch.

        Returns:
          int32 [B, S], [B, P] and [B, 1], float32 masked_lm_weights [B, P].
        """
        seeds = tf.unstack(tf.random.experimental.stateless_split(seed, 5), num=5)
        labels = columns["next_sentence_labels"]  # [B, 1]
        lengths = tf.cast(columns["token_ids"].row_lengths(), tf.int32)  # [B]
        length_a = columns["num_tokens_a"][:, 0]
        rows = rows or (0, None, tf.shape(lengths)[0])
        swap = tf.zeros_like(lengths, tf.bool)
        if self.swaps:
            swap = _uniform(seeds[0], rows) < 0.5
            labels = tf.cast(swap, tf.int32)[:, None]
        sequence = self._assemble(columns, lengths, length_a, swap)
        ngrams = choose_ngrams(
            sequence["boundary" if self.rule.whole_words else "is_token"],
            sequence["is_special"],
            self._budgets(sequence["total"]),
            masking.ngram_thresholds(self.rule.ngram, self.rule.favor_shorter),
            _ngram_draws(seeds[1], rows),
            self._excluded(sequence["tokens"]),
        )
        return {
            **self._replace(sequence, ngrams, seeds[2:], rows),
            "input_mask": tf.cast(sequence["is_token"], tf.int32),
            "segment_ids": sequence["segment_ids"],
            "token_boundary": tf.cast(sequence["boundary"], tf.int32),
            "next_sentence_labels": labels,
        }

    def _excluded(self, tokens: tf.Tensor) -> tf.Tensor | None:
        """bool [B, S], the tokens whose words are never predicted; None: there are none."""
        return None if self.rule.excluded_id is None else tokens == self.rule.excluded_id

    def _assemble(
        self,
        columns: Mapping[str, tf.Tensor | tf.RaggedTensor],
        lengths: tf.Tensor,
        length_a: tf.Tensor,
        swap: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """[CLS] first segment [SEP] second segment [SEP], [B, S] each; `total` is int32 [B].

        token_ids a0 a1 a2 b0 b1, num_tokens_a 3, swapped, S 9
        position   0     1  2  3     4  5  6  7     8
        source           3  4        0  1  2               place in token_ids
        tokens     [CLS] b0 b1 [SEP] a0 a1 a2 [SEP] 0
        """
        length_b = lengths - length_a
        first = tf.where(swap, length_b, length_a)
        second = lengths - first
        has_second = tf.cast(second > 0, tf.int32)
        total = lengths + 2 + has_second
        position = tf.range(self.max_seq_length)[None]  # [1, S]
        in_second = position >= (first + 2)[:, None]
        # source - position: above, 3 - 1 for the first segment, 0 - 4 for the second.
        from_first = tf.where(swap, length_a, 0) - 1
        from_second = tf.where(swap, 0, length_a) - first - 2
        source = position + tf.where(in_second, from_second[:, None], from_first[:, None])
        source = tf.clip_by_value(source, 0, tf.maximum(lengths - 1, 0)[:, None])
        source += tf.cast(columns["token_ids"].row_starts(), tf.int32)[:, None]
        is_token = position < total[:, None]
        is_separator = (position == (first + 1)[:, None]) | (position == (total - 1)[:, None])
        is_special = (position == 0) | is_separator
        tokens = tf.gather(columns["token_ids"].values, source)
        tokens = tf.where(is_separator, self.sep_id, tokens)
        tokens = tf.where(position == 0, self.cls_id, tokens)
        is_special |= tokens == self.sep_id  # Between packed documents.
        starts_segment = (position == 1) | (position == (first + 2)[:, None])
        starts_word = tf.gather(columns["token_boundary"].values, source) > 0
        return {
            "tokens": tf.where(is_token, tokens, 0),
            "is_token": is_token,
            "is_special": is_special & is_token,
            "boundary": (is_special | starts_segment | starts_word) & is_token,
            "segment_ids": tf.cast(in_second & is_token, tf.int32),
            "total": total,
        }

    def _budgets(self, total: tf.Tensor) -> tf.Tensor:
        """int32 [B], see `masking.prediction_budgets`."""
        budgets = tf.cast(tf.round(tf.cast(total, tf.float64) * self.rule.rate), tf.int32)
        return tf.clip_by_value(budgets, 1, self.rule.max_predictions)

    def _replace(
        self, sequence: dict[str, tf.Tensor], ngrams: tf.Tensor, seeds: list[tf.Tensor], rows: Rows
    ) -> dict[str, tf.Tensor]:
        """The columns that masking decides: input_ids and the three of masked_lm."""
        tokens = sequence["tokens"]
        is_label = ngrams > 0
        draws = _uniform(seeds[0], rows, self.max_seq_length)  # [B, S]
        if self.rule.by_span:  # The draw at the number of the n-gram; numbers may exceed S.
            draws = tf.gather(draws, ngrams % self.max_seq_length, batch_dims=1)
        ids = tf.constant(self.rule.replacement_ids)
        places = _uniform(seeds[1], rows, self.max_seq_length, maxval=tf.size(ids), dtype=tf.int32)
        kept = masking.MASK_PROBABILITY + masking.KEEP_PROBABILITY
        replaced = tf.where(draws < kept, tokens, tf.gather(ids, places))
        replaced = tf.where(draws < masking.MASK_PROBABILITY, self.rule.mask_id, replaced)
        return {
            "input_ids": tf.where(is_label, replaced, tokens),
            "masked_lm_positions": self._pack(positions_of(tokens), is_label),
            "masked_lm_ids": self._pack(tokens, is_label),
            "masked_lm_weights": self._pack(tf.ones_like(tokens, tf.float32), is_label),
        }

    def _pack(self, values: tf.Tensor, is_label: tf.Tensor) -> tf.Tensor:
        """[B, P]: the values [B, S] at labels, zero-padded."""
        labels = tf.ragged.boolean_mask(values, is_label)
        return labels.to_tensor(shape=[None, self.rule.max_predictions])


def _uniform(seed: tf.Tensor, rows: Rows, *row_shape: int, **arguments: Any) -> tf.Tensor:
    """[B, *row_shape]: random numbers of some rows, cut from those of the whole batch."""
    first, end, size = rows
    return tf.random.stateless_uniform([size, *row_shape], seed, 0, **arguments)[first:end]


def _ngram_draws(seed: tf.Tensor, rows: Rows) -> Callable[[tf.Tensor], tf.Tensor]:
    """The draws of `choose_ngrams`: number of a round -> float64 [2, B] in [0, 1)."""
    first, end, size = rows

    def draw(number: tf.Tensor) -> tf.Tensor:
        key = tf.random.experimental.stateless_fold_in(seed, tf.cast(number, tf.int64))
        return tf.random.stateless_uniform([2, size], key, dtype=tf.float64)[:, first:end]

    return draw
