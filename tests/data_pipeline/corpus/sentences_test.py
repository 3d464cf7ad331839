"""Paragraphs and sentences of raw text."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.corpus import sentences
from data_pipeline.corpus.documents import Corpus, read_documents
from data_pipeline.corpus.report import ReadReport
from data_pipeline.corpus.sentences import split_sentences


def read(path, input_format="auto", report=None, **options):
    return list(read_documents(Corpus(str(path), input_format, **options), report))


def test_rules_and_rows_of_signs_are_left_out_of_raw_text(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"text": "Some text.\\n\\n+-----+\\n\\n| 1 | 2 |\\n\\n(1) Yes!\\n\\n* * *"}\n'
    )
    report = ReadReport()
    assert read(tmp_path / "a.jsonl", report=report) == [["Some text.", "(1) Yes!"]]
    assert report.problems == {"sentence with fewer letters and digits than signs, skipped": 3}


@pytest.mark.parametrize(
    "answer",
    [
        *("“No.”", '"I?"', "— A...", "'Oh!'", "「好。」", "No!!!", "«Si!»", "(1) Yes!"),
        *("नहीं है।", "မြန်မာနိုင်ငံ", "שָׁלוֹם.", "می\u200cخواهم"),  # More marks than letters, or joiners.
    ],
)
def test_answers_of_a_word_are_kept(tmp_path, answer):
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"text": f"He asked again.\n\n{answer}\n\n| a | b |\n\n1...\n\n“...”"})
    )
    assert read(tmp_path / "a.jsonl") == [["He asked again.", answer]]


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab1 é—_.,|"), min_size=1, max_size=20))
def test_signs_are_counted(text):
    text = " ".join(text.split())
    word = text
    while word and word[0] in " —.,":
        word = word[1:]
    while word and word[-1] in " —.,":
        word = word[:-1]
    if any(character.isalpha() for character in word):
        text = word
    letters = sum(character.isalnum() for character in text)
    signs = sum(not character.isalnum() and character != " " for character in text)
    assert sentences._mostly_signs(text) == (letters < signs)


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_sentence_splitter_takes_any_text_and_loses_nothing(text):
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


def test_sentence_splitter_survives_rare_spaces():
    assert split_sentences("It holds.\u2006 Well.\u2006And so on.") == [
        "It holds.",
        "Well.",
        "And so on.",
    ]
