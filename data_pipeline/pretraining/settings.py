"""The settings of pre-training records, checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from data_pipeline.errors import UserError
from data_pipeline.pretraining import segments
from data_pipeline.pretraining.masking import MaskingRule, replacement_ids
from data_pipeline.records import features
from data_pipeline.tokenizers.base import Tokenizer


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise UserError(message)


@dataclasses.dataclass(frozen=True)
class PretrainingSettings:
    """Settings of pre-training records; the fields are the flags of create_pretraining_data.

    Attributes:
      max_seq_length: S, special pieces included.
      max_predictions_per_seq: P; 0 becomes round(masked_lm_prob * S).
      masked_lm_prob: share of the tokens to predict.
      ngram: longest masked n-gram, in words; 0 becomes 3 for whole words, else 1.
      favor_shorter_ngram: P(n) proportional to 1/n; otherwise those probabilities in reverse order.
      whole_word_mask: words are masked as a whole; otherwise pieces are, as BERT did at first, and
        n-grams are of pieces.
      mask_unknown: <unk> may be predicted; otherwise it is never masked.
      short_seq_prob: share of the documents (per copy) that get a shorter target length; of the
        records, when documents are packed.
      dupe_factor: copies of the corpus, each with other pairs and masks; 0 becomes 10 for static
        masks and 1 for dynamic ones.
      sentence_objective: "sop", "nsp" or "none".
      pack_documents: with "none", records are filled with whole sentences of one document after the
        other and [SEP] between them, as RoBERTa's FULL-SENTENCES.
      masking: "static": records hold masks; "dynamic": they are masked when they are read, and
        dupe_factor copies differ in their pairs only.
      mask_by_span: [MASK], the same or a random piece is drawn per n-gram, not per piece.
      seed: seed of every random choice.

    Raises:
      UserError: a value is out of its range, or two do not go together.
    """

    max_seq_length: int = 512
    max_predictions_per_seq: int = 0
    masked_lm_prob: float = 0.15
    ngram: int = 0
    favor_shorter_ngram: bool = True
    whole_word_mask: bool = True
    mask_unknown: bool = True
    short_seq_prob: float = 0.1
    dupe_factor: int = 0
    sentence_objective: str = "sop"
    pack_documents: bool = False
    masking: str = "dynamic"
    mask_by_span: bool = False
    seed: int = 12345

    def __post_init__(self) -> None:
        s, p = self.max_seq_length, self.max_predictions_per_seq
        _require(s >= 8, f"--max_seq_length should be at least 8; received {s}.")
        _require(
            0 <= p <= s - 2,
            f"--max_predictions_per_seq should lie in 0..{s - 2} (0: automatic); received {p}.",
        )
        _require(
            0 < self.masked_lm_prob < 1,
            f"--masked_lm_prob should lie between 0 and 1; received {self.masked_lm_prob}.",
        )
        _require(
            self.ngram >= 0, f"--ngram should be at least 1 (0: automatic); received {self.ngram}."
        )
        _require(
            0 <= self.short_seq_prob <= 1,
            f"--short_seq_prob should lie between 0 and 1; received {self.short_seq_prob}.",
        )
        _require(
            self.dupe_factor >= 0,
            f"--dupe_factor should be at least 1 (0: automatic); received {self.dupe_factor}.",
        )
        _require(self.seed >= 0, f"--seed should not be negative; received {self.seed}.")
        _require(
            self.sentence_objective in segments.SENTENCE_OBJECTIVES,
            f"--sentence_objective should be one of {', '.join(segments.SENTENCE_OBJECTIVES)}; "
            f"received {self.sentence_objective!r}.",
        )
        _require(
            self.masking in features.MASKINGS,
            f"--masking should be one of {', '.join(features.MASKINGS)}; received "
            f"{self.masking!r}.",
        )
        _require(
            not self.pack_documents or self.sentence_objective == "none",
            "--pack_documents=true goes with --sentence_objective=none: pairs of segments are of "
            f"one document; received --sentence_objective={self.sentence_objective}.",
        )
        predictions = min(max(1, round(self.masked_lm_prob * s)), s - 2)
        self._fill_in("max_predictions_per_seq", predictions)
        self._fill_in("ngram", 3 if self.whole_word_mask else 1)
        self._fill_in("dupe_factor", 10 if self.masking == "static" else 1)

    def _fill_in(self, name: str, automatic: int) -> None:
        """Puts the automatic value in place of a field's 0."""
        object.__setattr__(self, name, getattr(self, name) or automatic)

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> PretrainingSettings:
        """The settings of records, from their manifest; an older one lacks the latest fields."""
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**{k: v for k, v in manifest["settings"].items() if k in names})

    @property
    def max_num_tokens(self) -> int:
        """Largest number of tokens of text: S without [CLS] and the [SEP] of each segment."""
        return self.max_seq_length - (2 if self.sentence_objective == "none" else 3)

    def masking_rule(self, tokenizer: Tokenizer) -> MaskingRule:
        """The rule that masks ids of this tokenizer."""
        return MaskingRule(
            rate=self.masked_lm_prob,
            max_predictions=self.max_predictions_per_seq,
            ngram=self.ngram,
            favor_shorter=self.favor_shorter_ngram,
            by_span=self.mask_by_span,
            whole_words=self.whole_word_mask,
            excluded_id=None if self.mask_unknown else tokenizer.unk_id,
            mask_id=tokenizer.mask_id,
            replacement_ids=replacement_ids(tokenizer.vocab_size, tokenizer.special_ids),
        )
