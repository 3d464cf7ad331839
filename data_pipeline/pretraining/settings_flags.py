"""Flags of the programs that make pre-training examples of text."""

from __future__ import annotations

from collections.abc import Collection

from data_pipeline.command_line import flags
from data_pipeline.command_line.settings import define
from data_pipeline.corpus.documents import Corpus
from data_pipeline.corpus.formats import INPUT_FORMATS
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers import tokenizer_flags

FLAGS = flags.FLAGS


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


def define_flags(without: Collection[str] = ()) -> None:
    """Defines the flags by which text is read, and examples are made of it, but for the settings
    `without`.
    """
    tokenizer_flags.define_flags()
    define_reading_flags()
    define(PretrainingSettings, "Examples made of text", without=without)


def corpus_from_flags(patterns: str, deduplicate: bool = False) -> Corpus:
    """The files that match `patterns`, read as the flags say."""
    return Corpus(patterns, FLAGS.input_format, FLAGS.text_field, FLAGS.language, deduplicate)
