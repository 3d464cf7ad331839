"""Flags of the programs that make pre-training examples from text."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from data_pipeline.command_line import flags
from data_pipeline.command_line.settings import define
from data_pipeline.corpus.documents import READING, Corpus
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers import tokenizer_flags

FLAGS = flags.FLAGS


def define_flags(without: Collection[str] = (), hidden: Collection[str] = ()) -> None:
    """Defines the flags for reading text and making examples from it; see `define`."""
    tokenizer_flags.define_flags()
    define(Corpus, "Text", without=without, hidden=hidden)
    define(PretrainingSettings, "Examples made from text", without=without, hidden=hidden)


def reading_arguments() -> str:
    """Arguments for the reading flags that differ from their defaults: " --language=de"."""
    return "".join(
        f" --{name}={shlex.quote(str(FLAGS[name].value))}"
        for name in READING
        if FLAGS[name].value != FLAGS[name].default
    )
