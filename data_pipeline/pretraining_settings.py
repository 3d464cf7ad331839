"""How pre-training records are made: the settings, checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from data_pipeline import features, masking, segments
from data_pipeline.errors import UserError
from data_pipeline.tokenizer import Tokenizer


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise UserError(message)


@dataclasses.dataclass(frozen=True)
class PretrainingSettings:
    """How records are made; the fields are the flags of create_pretraining_data.

    Attributes:
      max_seq_length: S, special pieces included.
      max_predictions_per_seq: P; 0 becomes round(masked_lm_prob * S).
      masked_lm_prob: share of the tokens to predict.
      ngram: longest masked n-gram, in words.
      favor_shorter_ngram: P(n) proportional to 1/n; otherwise those probabilities in reverse order.
      short_seq_prob: share of the documents (per copy) that get a shorter target length.
      dupe_factor: copies of the corpus, each with other pairs and masks.
      sentence_objective: "sop", "nsp" or "none".
      masking: "static": records hold masks; "dynamic": they are masked when they are read, and
        dupe_factor copies differ in their pairs only.
      mask_by_span: [MASK], the same or a random piece is drawn per n-gram, not per piece.
      seed: of every random choice.
    """

    max_seq_length: int = 512
    max_predictions_per_seq: int = 0
    masked_lm_prob: float = 0.15
    ngram: int = 3
    favor_shorter_ngram: bool = True
    short_seq_prob: float = 0.1
    dupe_factor: int = 10
    sentence_objective: str = "sop"
    masking: str = "static"
    mask_by_span: bool = False
    seed: int = 12345

    def __post_init__(self):
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
        _require(self.ngram >= 1, f"--ngram should be at least 1; received {self.ngram}.")
        _require(
            0 <= self.short_seq_prob <= 1,
            f"--short_seq_prob should lie between 0 and 1; received {self.short_seq_prob}.",
        )
        _require(
            self.dupe_factor >= 1,
            f"--dupe_factor should be at least 1; received {self.dupe_factor}.",
        )
        _require(self.seed >= 0, f"--seed should not be negative; received {self.seed}.")
        _require(
            self.sentence_objective in segments.OBJECTIVES,
            f"--sentence_objective should be one of {', '.join(segments.OBJECTIVES)}; received "
            f"{self.sentence_objective!r}.",
        )
        _require(
            self.masking in features.MASKINGS,
            f"--masking should be one of {', '.join(features.MASKINGS)}; received "
            f"{self.masking!r}.",
        )
        if p == 0:
            automatic = max(1, round(self.masked_lm_prob * s))
            object.__setattr__(self, "max_predictions_per_seq", min(automatic, s - 2))

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> PretrainingSettings:
        """The settings of records, from their manifest."""
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: manifest["settings"][name] for name in names})

    @property
    def max_num_tokens(self) -> int:
        """Room for text: S without [CLS] and the [SEP] of each segment."""
        return self.max_seq_length - (2 if self.sentence_objective == "none" else 3)

    def masking_rule(self, tokenizer: Tokenizer) -> masking.MaskingRule:
        """What is masked in text of this tokenizer, and by what."""
        return masking.MaskingRule(
            rate=self.masked_lm_prob,
            max_predictions=self.max_predictions_per_seq,
            ngram=self.ngram,
            favor_shorter=self.favor_shorter_ngram,
            by_span=self.mask_by_span,
            mask_id=tokenizer.mask_id,
            replacement_ids=masking.replacement_ids(tokenizer.vocab_size, tokenizer.special_ids),
        )
