"""Converts pairs of segments to the columns of records, for many records at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from data_pipeline.pretraining import masking, recurring, span_questions
from data_pipeline.pretraining.segments import Pairs
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.pretraining.span_questions import Rows
from data_pipeline.pretraining.tokenized import TokenizedDocuments
from data_pipeline.records import example_bytes, features
from data_pipeline.tokenizers.base import Tokenizer


@dataclasses.dataclass(frozen=True)
class RecordColumns:
    """R records by column, and their counts for statistics."""

    columns: dict[str, example_bytes.Column]  # By name of the feature.
    num_records: int
    num_tokens: int  # Total number, including special pieces.
    num_swapped: int  # Records with label 1; R / 2 if the order is drawn when reading.
    # int64 [V], number of predictions of each id; for dynamic records, of tokens to choose from.
    label_counts: np.ndarray
    num_predictions: int  # For dynamic records, the largest possible number.


def static_counts(columns: Mapping[str, np.ndarray], vocab_size: int) -> RecordColumns:
    """The counts of static records, from their columns ([R, S], [R, P], [R, 1])."""
    labels = columns["masked_lm_ids"][columns["masked_lm_weights"] > 0]
    return RecordColumns(
        {},
        num_records=len(columns["input_mask"]),
        num_tokens=int(columns["input_mask"].sum()),
        num_swapped=int(columns["next_sentence_labels"].sum()),
        label_counts=np.bincount(labels, minlength=vocab_size),
        num_predictions=len(labels),
    )


def dynamic_counts(
    ids: np.ndarray,
    length_a: np.ndarray,
    lengths: np.ndarray,
    labels: np.ndarray,
    settings: PretrainingSettings,
    tokenizer: Tokenizer,
) -> RecordColumns:
    """The counts, without columns, of R dynamic records. Takes all their ids, int [T], and int [R]:
    numbers of tokens of A (`length_a`) and of A and B (`lengths`), and next_sentence_labels.
    """
    has_b = lengths > length_a
    if settings.segments == "dynamic":  # A is the whole chunk, which is divided when read.
        lengths = np.minimum(lengths, settings.max_num_tokens)
        has_b = np.full(len(lengths), settings.sentence_objective == "sop")
    with_specials = lengths + 2 + has_b
    budgets = masking.prediction_budgets(
        with_specials, settings.masked_lm_prob, settings.max_predictions_per_seq
    )
    is_swapped_later = settings.sentence_objective == "sop"
    label_counts = np.bincount(ids, minlength=tokenizer.vocab_size)
    label_counts[[tokenizer.cls_id, tokenizer.sep_id]] = 0  # [SEP] separates packed documents.
    if not settings.mask_unknown:
        label_counts[tokenizer.unk_id] = 0
    return RecordColumns(
        {},
        num_records=len(lengths),
        num_tokens=int(with_specials.sum()),
        num_swapped=len(lengths) // 2 if is_swapped_later else int(labels.sum()),
        label_counts=label_counts,
        num_predictions=int(budgets.sum()),
    )


class ColumnMaker:
    """Converts pairs of segments to the columns of their records. The tokenizer is the one that
    made the ids. `span_mask_share`: see `span_questions.ask`; 0: no questions.
    """

    def __init__(
        self, settings: PretrainingSettings, tokenizer: Tokenizer, span_mask_share: float = 0.0
    ) -> None:
        self._settings, self._tokenizer = settings, tokenizer
        self._span_mask_share = span_mask_share
        self._rule = settings.masking_rule(tokenizer, is_content=span_mask_share > 0)

    def make(
        self, tokenized: TokenizedDocuments, pairs: Pairs, rng: np.random.Generator
    ) -> RecordColumns:
        """The columns of pairs of segments of `tokenized`; `rng` draws the masks."""
        if self._settings.masking == "dynamic":
            return self._dynamic(tokenized, pairs)
        arrays = self.masked(tokenized, pairs, rng)
        columns = {
            name: example_bytes.float_column(values)
            if name == "masked_lm_weights"
            else example_bytes.int_column(values)
            for name, values in arrays.items()
        }
        counts = static_counts(arrays, self._tokenizer.vocab_size)
        return dataclasses.replace(counts, columns=columns)

    def _dynamic(self, tokenized: TokenizedDocuments, pairs: Pairs) -> RecordColumns:
        """Columns of dynamic records: the tokens of A and B, concatenated for all records.

        a pair of ids[20:23] and ids[10:12] -> source [20 21 22 10 11], starts 0, ends 5
        """
        lengths = pairs.length_a + pairs.length_b
        ends = np.cumsum(lengths)
        starts = ends - lengths
        first = np.stack([pairs.start_a, pairs.start_b], axis=1).ravel()
        size = np.stack([pairs.length_a, pairs.length_b], axis=1).ravel()
        source, _ = recurring.ranges(first, first + size)
        ids, boundary = tokenized.ids[source], tokenized.starts_word[source]
        # A segment begins with a word, even if the text was cut inside a word.
        boundary[starts] = True
        has_b = pairs.length_b > 0
        boundary[(starts + pairs.length_a)[has_b]] = True
        if self._settings.segments == "dynamic":
            starts_sentence = np.zeros(len(tokenized.ids) + 1, np.int32)
            starts_sentence[tokenized.sentences] = 1
            boundary = boundary + starts_sentence[source]  # 2 where a sentence starts.
        columns = {
            "token_ids": example_bytes.int_column(ids, ends),
            "token_boundary": example_bytes.int_column(boundary, ends),
            "num_tokens_a": example_bytes.int_column(pairs.length_a[:, None]),
            "next_sentence_labels": example_bytes.int_column(pairs.label[:, None]),
        }
        counts = dynamic_counts(
            ids, pairs.length_a, lengths, pairs.label, self._settings, self._tokenizer
        )
        return dataclasses.replace(counts, columns=columns)

    def masked(
        self,
        tokenized: TokenizedDocuments,
        pairs: Pairs,
        rng: np.random.Generator,
        mask_share: float | None = None,
    ) -> dict[str, np.ndarray]:
        """The masked columns of static records, and of dynamic ones when they are read: [R, S],
        [R, P] and [R, 1] by name of the feature; flags are bool. Only `ids` and `starts_word` of
        `tokenized` are used. `rng` draws the masks, for `mask_share` of the tokens (None: the share
        in the settings).

            a pair of ids[20:23] and ids[10:12], S 9
            position   0     1  2  3  4     5  6  7     8
            source     -    20 21 22  -    10 11  -     -
            tokens     [CLS] .  .  .  [SEP] .  .  [SEP] 0
        """
        s, p = self._settings.max_seq_length, self._settings.max_predictions_per_seq
        row, position, has_b = np.arange(len(pairs)), np.arange(s), pairs.length_b > 0
        lengths = pairs.length_a + pairs.length_b + 2 + has_b  # [CLS] A [SEP] B [SEP], or no B.
        is_b = position >= (pairs.length_a + 2)[:, None]  # [R, S]
        # source - position is start_a - 1 in A, and start_b - length_a - 2 in B. At special pieces
        # and padding, the source is arbitrary, and the tokens are overwritten.
        source = position + np.where(
            is_b, (pairs.start_b - pairs.length_a - 2)[:, None], (pairs.start_a - 1)[:, None]
        )
        np.clip(source, 0, len(tokenized.ids) - 1, out=source)
        tokens, boundary = tokenized.ids[source], tokenized.starts_word[source]
        is_special = np.zeros((len(pairs), s), bool)
        for places in (0, pairs.length_a + 1, lengths - 1):
            is_special[row, places] = True
        tokens[is_special] = self._tokenizer.sep_id
        tokens[:, 0] = self._tokenizer.cls_id
        boundary |= is_special
        boundary[:, 1] = True  # As in `_dynamic`.
        boundary[row[has_b], (pairs.length_a + 2)[has_b]] = True
        is_token = position < lengths[:, None]
        tokens[~is_token] = 0
        boundary &= is_token
        if self._settings.pack_documents:
            is_special |= tokens == self._tokenizer.sep_id
        rows, shown, questions = Rows(tokens, boundary, is_special, is_b & is_token), None, {}
        if self._span_mask_share:
            rows, lengths, answers = span_questions.ask(
                rows, lengths, self._span_mask_share, self._rule, rng
            )
            shown = span_questions.tokens_of(answers, s)
            names = (feature.name for feature in features.question_schema(answers.starts.shape[1]))
            questions = dict(zip(names, answers))
        rule = self._rule
        if mask_share is not None:
            rule = dataclasses.replace(rule, rate=mask_share)
        masked = masking.mask_sequences(*rows[:3], lengths, rule, rng, shown)
        # Rows [0, 0, 2]: counts [2, 0, 1] -> places [0, 1, 0] among the predictions of each row.
        counts = np.bincount(masked.rows, minlength=len(pairs))
        place = np.arange(len(masked.rows)) - (np.cumsum(counts) - counts)[masked.rows]
        predicted = np.zeros((2, len(pairs), p), np.int32)
        predicted[:, masked.rows, place] = masked.positions, masked.labels
        return {
            "input_ids": masked.tokens,
            "input_mask": np.arange(s) < lengths[:, None],
            "segment_ids": rows.is_b,
            "token_boundary": rows.boundaries,
            "masked_lm_positions": predicted[0],
            "masked_lm_ids": predicted[1],
            "masked_lm_weights": np.arange(p) < counts[:, None],
            "next_sentence_labels": pairs.label[:, None],
            **questions,
        }
