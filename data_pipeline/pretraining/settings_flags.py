"""Flags of the programs that make pre-training examples of text."""

from __future__ import annotations

import dataclasses
from typing import Any

from data_pipeline.command_line import flags
from data_pipeline.corpus.documents import Corpus
from data_pipeline.corpus.formats import INPUT_FORMATS
from data_pipeline.pretraining import segments
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers import tokenizer_flags

FLAGS = flags.FLAGS
_DEFAULTS = PretrainingSettings()


def define_reading_flags() -> None:
    """Defines the flags by which files become documents and sentences."""
    flags.DEFINE_enum("input_format", "auto", INPUT_FORMATS, "See data_pipeline/corpus/formats.py.")
    flags.DEFINE_string(
        "text_field", "text", "Field of jsonl, or column of Parquet, with the text."
    )
    flags.DEFINE_string("language", "en", "Language of the text, for splitting sentences.")


def reading_arguments() -> str:
    """The reading flags that are not at their defaults, as words of a command: " --language=de"."""
    return "".join(
        f" --{name}={FLAGS[name].value}"
        for name in ("input_format", "text_field", "language")
        if FLAGS[name].value != FLAGS[name].default
    )


def define_flags() -> None:
    """Defines the flags by which text is read, and examples are made of it."""
    tokenizer_flags.define_flags()
    define_reading_flags()
    flags.group("Examples made of text")
    flags.DEFINE_integer(
        "max_seq_length",
        _DEFAULTS.max_seq_length,
        "Tokens per example, special pieces included.",
        lower_bound=8,
        upper_bound=65536,
    )
    flags.DEFINE_integer(
        "max_predictions_per_seq",
        0,
        "Masked tokens per example; 0: masked_lm_prob * max_seq_length.",
        upper_bound=65536,
    )
    flags.DEFINE_float(
        "masked_lm_prob", _DEFAULTS.masked_lm_prob, "Share of tokens to predict.", above=0, below=1
    )
    flags.DEFINE_integer(
        "ngram",
        0,
        "Longest masked n-gram, in words; 0: 3, or 1 with --whole_word_mask=false.",
        upper_bound=100,
    )
    flags.DEFINE_bool(
        "favor_shorter_ngram",
        True,
        "P(n) is proportional to 1/n; false reverses the probabilities.",
    )
    flags.DEFINE_bool(
        "whole_word_mask",
        _DEFAULTS.whole_word_mask,
        "Mask whole words; false: pieces one by one, as BERT did at first.",
    )
    flags.DEFINE_bool(
        "mask_unknown", _DEFAULTS.mask_unknown, "<unk> may be predicted; false: never."
    )
    flags.DEFINE_float(
        "short_seq_prob",
        _DEFAULTS.short_seq_prob,
        "Share of documents cut into shorter examples.",
        upper_bound=1,
    )
    flags.DEFINE_enum(
        "sentence_objective",
        _DEFAULTS.sentence_objective,
        segments.SENTENCE_OBJECTIVES,
        "Sentence order, next sentence, or no pairs at all.",
    )
    flags.DEFINE_bool(
        "mask_by_span",
        _DEFAULTS.mask_by_span,
        "Choose [MASK], the same or a random piece once per n-gram instead of per piece.",
    )


def corpus_from_flags(patterns: str, deduplicate: bool = False) -> Corpus:
    """The files that match `patterns`, read as the flags say."""
    return Corpus(patterns, FLAGS.input_format, FLAGS.text_field, FLAGS.language, deduplicate)


def settings_from_flags(**others: Any) -> PretrainingSettings:
    """The flags as checked settings; `others` are the fields without a flag in this file."""
    names = {field.name for field in dataclasses.fields(PretrainingSettings)} - set(others)
    return PretrainingSettings(**{name: FLAGS[name].value for name in names}, **others)
