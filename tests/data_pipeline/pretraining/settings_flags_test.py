"""Flags become settings and a corpus; their limits are those of the settings."""

import pytest

from data_pipeline.command_line import flags
from data_pipeline.command_line.settings import read
from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining import settings_flags
from data_pipeline.pretraining.settings import PretrainingSettings


@pytest.fixture
def parse(new_flags):
    """(*argv) -> sets the flags."""
    with new_flags():
        settings_flags.define_flags(without=("dupe_factor", "seed"))
        yield lambda *argv: flags.FLAGS(["program", *argv])


def test_without_flags_settings_are_the_defaults(parse):
    parse()
    assert read(PretrainingSettings) == PretrainingSettings()
    assert read(Corpus, patterns="a.txt") == Corpus("a.txt")
    assert settings_flags.reading_arguments() == ""
    assert flags.FLAGS.lower_case is None


def test_how_text_is_read(parse):
    parse("--deduplicate", "--input_format=jsonl", "--text_field=body", "--language=de")
    corpus = read(Corpus, patterns="a.txt")
    assert corpus == Corpus("a.txt", "jsonl", "body", "de", True)
    expected = " --input_format=jsonl --text_field=body --language=de"
    assert settings_flags.reading_arguments() == expected
    parse("--text_field=text", "--input_format=auto")
    assert settings_flags.reading_arguments() == " --language=de"
