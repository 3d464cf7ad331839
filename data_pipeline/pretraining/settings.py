"""The settings of pre-training records, and their checks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from data_pipeline.errors import UserError
from data_pipeline.pretraining import segments
from data_pipeline.pretraining.masking import MaskingRule, replacement_ids
from data_pipeline.pretraining.recurring import content_pieces
from data_pipeline.records import features
from data_pipeline.schedules import Schedule
from data_pipeline.settings import Numbers, Settings, setting
from data_pipeline.tokenizers.base import Tokenizer

# Settings that earlier versions did not have, with the values that match their behavior.
_LATER = {"recurring_mask_share": 0.0, "segments": "fixed", "mask_schedule": None}
_SHARES = Numbers(float, above=0, below=1)  # Allowed shares of the tokens to predict.


@dataclasses.dataclass(frozen=True)
class PretrainingSettings(Settings):
    """The settings of pre-training examples; 0 becomes the automatic value that the help describes.

    Raises:
      UserError: a value is out of range, or two values are incompatible.
    """

    max_seq_length: int = setting(
        512, "Number of tokens per example, special pieces included.", at_least=8, at_most=65536
    )
    max_predictions_per_seq: int = setting(
        0,
        "Largest number of masked tokens per example; 0: masked_lm_prob * max_seq_length.",
        at_most=65536,
        expert=True,
    )
    masked_lm_prob: float = setting(0.15, "Share of the tokens to predict.", above=0, below=1)
    mask_schedule: str | None = setting(
        None,
        "Share of the tokens to predict, SHARE@STEP,SHARE@STEP,...: each applies from that update "
        "on, and the first STEP is 0. Sets --masked_lm_prob to the largest share.",
        expert=True,
    )
    ngram: int = setting(
        0,
        "Length in words of the longest masked n-gram; 0: 3, or 1 with --whole_word_mask=false.",
        at_most=100,
        expert=True,
    )
    favor_shorter_ngram: bool = setting(
        True,
        "Mask n-grams with a probability proportional to 1/n; false reverses the probabilities.",
        expert=True,
    )
    whole_word_mask: bool = setting(
        True,
        "Mask whole words; false: single pieces, as BERT did at first, and n-grams of pieces.",
        expert=True,
    )
    mask_unknown: bool = setting(True, "Mask <unk> like other pieces; false: never.", expert=True)
    short_seq_prob: float = setting(
        0.1,
        "Share of the documents, or of the records of packed documents, to cut into shorter "
        "examples.",
        at_most=1,
        expert=True,
    )
    dupe_factor: int = setting(
        0,
        "Number of copies of the text, each with new pairs and masks; 0: 10 for static masks, 1 "
        "for dynamic ones.",
        at_most=1000,
    )
    sentence_objective: str = setting(
        "sop",
        "Objective of sentence pairs: sentence order (sop), next sentence (nsp), or no pairs at "
        "all (none).",
        one_of=segments.SENTENCE_OBJECTIVES,
    )
    segments: str = setting(
        "fixed",
        "When to cut the text into segments. fixed: when examples are made; dynamic: whenever "
        "training reads them, with a different start, border and end in each epoch.",
        one_of=("fixed", "dynamic"),
        expert=True,
    )
    pack_documents: bool = setting(
        False,
        "With --sentence_objective=none: fill records with whole sentences of one document after "
        "the other, [SEP] between them, as RoBERTa does.",
        expert=True,
    )
    masking: str = setting(
        "dynamic",
        "When to choose masks. dynamic: whenever training reads; static: once, when the records "
        "are written.",
        one_of=features.MASKINGS,
    )
    mask_by_span: bool = setting(
        False,
        "Choose [MASK], the same or a random piece once per n-gram instead of per piece.",
        expert=True,
    )
    recurring_mask_share: float = setting(
        0.0,
        "Share of the masks to place on spans of words that also occur earlier in the same "
        "example, as far as there are any.",
        at_most=1,
        expert=True,
    )
    seed: int = setting(12345, "Seed of all random choices.")

    def __post_init__(self) -> None:
        super().__post_init__()
        s = self.max_seq_length
        if self.max_predictions_per_seq > s - 2:
            raise UserError(
                f"--max_predictions_per_seq={self.max_predictions_per_seq} leaves no room for "
                f"special pieces in --max_seq_length={s}. Use at most {s - 2}, or 0: automatic."
            )
        if self.pack_documents and self.sentence_objective != "none":
            raise UserError(
                "--pack_documents=true requires --sentence_objective=none: pairs of segments are "
                f"of one document; received --sentence_objective={self.sentence_objective}."
            )
        if self.segments == "dynamic" and (
            self.masking == "static" or self.sentence_objective == "nsp" or self.pack_documents
        ):
            raise UserError(
                "--segments=dynamic requires --masking=dynamic, --sentence_objective=sop or none, "
                f"and --pack_documents=false; received {self.masking}, {self.sentence_objective}, "
                f"{str(self.pack_documents).lower()}."
            )
        if self.mask_schedule is not None:
            self._take_largest_share()
        # At least 1, and at most S minus [CLS] and one [SEP].
        predictions = min(max(1, round(self.masked_lm_prob * s)), s - 2)
        self._fill_in("max_predictions_per_seq", predictions)
        self._fill_in("ngram", 3 if self.whole_word_mask else 1)
        self._fill_in("dupe_factor", 10 if self.masking == "static" else 1)

    def _fill_in(self, name: str, automatic: int) -> None:
        """Replaces 0 in a field by its automatic value."""
        # The dataclass is frozen, so the field cannot simply be assigned.
        object.__setattr__(self, name, getattr(self, name) or automatic)

    def _take_largest_share(self) -> None:
        """Sets masked_lm_prob to the largest share of the schedule, for which batches need room."""
        if self.masking == "static":
            raise UserError(
                f"--mask_schedule={self.mask_schedule} is for masks that are drawn in training; "
                "received --masking=static. Use --masking=dynamic."
            )
        largest = max(self.mask_shares.values)
        if self.masked_lm_prob not in (PretrainingSettings.masked_lm_prob, largest):
            raise UserError(
                f"--masked_lm_prob={self.masked_lm_prob:g} and --mask_schedule="
                f"{self.mask_schedule} are both given. Give one."
            )
        object.__setattr__(self, "masked_lm_prob", largest)

    @property
    def mask_shares(self) -> Schedule:
        """The share of the tokens to predict, as a function of the step."""
        if self.mask_schedule is not None:
            return Schedule.parse("mask_schedule", self.mask_schedule, _SHARES)
        return Schedule((self.masked_lm_prob,))

    def check_no_run_is_needed(self) -> None:
        """Raises UserError if there is a schedule; for code without the steps of a run."""
        if self.mask_schedule is not None:
            raise UserError(
                f"--mask_schedule={self.mask_schedule} is for run_pretraining, which draws masks "
                "at every step of a run. Use --masked_lm_prob here."
            )

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> PretrainingSettings:
        """The settings of records, from their manifest; older ones lack the latest fields."""
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**{k: v for k, v in manifest["settings"].items() if k in names})

    def to_manifest(self) -> dict[str, Any]:
        """The settings for manifests and fingerprints. Settings in _LATER are included only if
        used, so that a folder of an earlier version is made again with the same bytes.
        """
        values = dataclasses.asdict(self)
        return {k: v for k, v in values.items() if k not in _LATER or v != _LATER[k]}

    @property
    def max_num_tokens(self) -> int:
        """Largest number of tokens of text: S without [CLS] and the [SEP] of each segment."""
        return self.max_seq_length - (2 if self.sentence_objective == "none" else 3)

    @property
    def max_record_tokens(self) -> int:
        """Largest number of tokens of text in a dynamic record."""
        # The last sentence of a chunk, which reaches the target, may itself be as long as that.
        return self.max_num_tokens * (2 if self.segments == "dynamic" else 1)

    def masking_rule(self, tokenizer: Tokenizer, is_content: bool = False) -> MaskingRule:
        """The rule for masking ids of this tokenizer; with `is_content`, it has content words."""
        is_content |= self.recurring_mask_share > 0
        return MaskingRule(
            rate=self.masked_lm_prob,
            max_predictions=self.max_predictions_per_seq,
            ngram=self.ngram,
            favor_shorter=self.favor_shorter_ngram,
            by_span=self.mask_by_span,
            whole_words=self.whole_word_mask,
            excluded_id=None if self.mask_unknown else tokenizer.unk_id,
            recurring_share=self.recurring_mask_share,
            is_content=content_pieces(tokenizer) if is_content else None,
            mask_id=tokenizer.mask_id,
            replacement_ids=replacement_ids(tokenizer.vocab_size, tokenizer.special_ids),
        )
