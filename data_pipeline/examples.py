"""One document to pre-training records: pairs, masks and the columns of the schema.

`document_examples` is a pure function of (document, copy, settings): records do not depend on how
many processes make them, nor on the documents around (next-sentence negatives excepted).
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from typing import Callable

import numpy as np

from data_pipeline import masking, segments
from data_pipeline.errors import UserError
from data_pipeline.tokenization import Tokenizer


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
        if p == 0:
            automatic = max(1, round(self.masked_lm_prob * s))
            object.__setattr__(self, "max_predictions_per_seq", min(automatic, s - 2))

    @property
    def max_num_tokens(self) -> int:
        """Room for text: S without [CLS] and the [SEP] of each segment."""
        return self.max_seq_length - (2 if self.sentence_objective == "none" else 3)


class ExampleMaker:
    """What stays the same for all documents: settings, vocabulary and masking rule."""

    def __init__(self, settings: PretrainingSettings, tokenizer: Tokenizer):
        self.settings = settings
        self._is_word_start = tokenizer.is_word_start
        self._cls, self._sep = np.array([tokenizer.cls_id]), np.array([tokenizer.sep_id])
        self._rule = masking.MaskingRule(
            rate=settings.masked_lm_prob,
            max_predictions=settings.max_predictions_per_seq,
            ngram=settings.ngram,
            favor_shorter=settings.favor_shorter_ngram,
            mask_id=tokenizer.mask_id,
            replacement_ids=masking.replacement_ids(tokenizer.vocab_size, tokenizer.special_ids),
        )

    def document_examples(
        self,
        sentences: Sequence[np.ndarray],
        index: int,
        copy: int,
        random_document: Callable[[np.random.Generator], Sequence[np.ndarray]] | None = None,
    ) -> tuple[list[dict[str, np.ndarray]], collections.Counter, np.random.Generator]:
        """Records of one copy of one document.

        Args:
          sentences: token ids of each sentence, int [n].
          index: the document's number in the corpus.
          copy: number of the copy, below dupe_factor.
          random_document: draws another document's sentences with the generator given ("nsp").

        Returns:
          Unpadded columns of the schema; the number of skipped chunks by reason; the document's
          random generator in its final state.
        """
        rng = np.random.default_rng((self.settings.seed, copy, index))
        pairs, skipped = segments.make_pairs(
            sentences,
            self.settings.sentence_objective,
            self.settings.max_num_tokens,
            self.settings.short_seq_prob,
            self._is_word_start,
            rng,
            random_document and (lambda: random_document(rng)),
        )
        return [self.example(pair, rng) for pair in pairs], skipped, rng

    def example(self, pair: segments.Pair, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Unpadded columns of the record of one pair."""
        first = [self._cls, pair.tokens_a, self._sep]
        second = [pair.tokens_b, self._sep] if len(pair.tokens_b) else []
        tokens = np.concatenate(first + second).astype(np.int32)  # [S']
        is_special = np.zeros(len(tokens), bool)
        is_special[[0, len(pair.tokens_a) + 1, -1]] = True
        starts = masking.word_starts(tokens, self._is_word_start, is_special)
        words = masking.find_words(starts, is_special)
        masked = masking.mask_sequence(tokens, words, self._rule, rng)
        segment_ids = np.ones(len(tokens), np.int32)
        segment_ids[: len(pair.tokens_a) + 2] = 0
        return {
            "input_ids": masked.tokens,
            "input_mask": np.ones(len(tokens), np.int32),
            "segment_ids": segment_ids,
            "token_boundary": starts.astype(np.int32),
            "masked_lm_positions": masked.positions,
            "masked_lm_ids": masked.labels,
            "masked_lm_weights": np.ones(len(masked.positions), np.float32),
            "next_sentence_labels": np.array([pair.label]),
        }
