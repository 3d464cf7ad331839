"""Flags of the programs that make pre-training examples of text."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from data_pipeline.command_line import flags
from data_pipeline.command_line.settings import define
from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers import tokenizer_flags

FLAGS = flags.FLAGS
READING = ("input_format", "text_field", "language")  # Flags by which files become sentences.


def define_flags(without: Collection[str] = (), hidden: Collection[str] = ()) -> None:
    """Defines the flags by which text is read, and examples are made of it; see `define`."""
    tokenizer_flags.define_flags()
    define(Corpus, "Text", without=without, hidden=hidden)
    define(PretrainingSettings, "Examples made of text", without=without, hidden=hidden)


def reading_arguments() -> str:
    """The reading flags that are not at their defaults, as words of a command: " --language=de"."""
    return "".join(
        f" --{name}={shlex.quote(str(FLAGS[name].value))}"
        for name in READING
        if FLAGS[name].value != FLAGS[name].default
    )
