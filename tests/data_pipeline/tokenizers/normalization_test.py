"""The Python face follows the reference; the graph face equals it on every code point."""

import sys
import unicodedata

import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from data_pipeline.tokenizers.graph import normalize_graph
from data_pipeline.tokenizers.normalization import normalize, normalize_many

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def in_graph(texts, lower, join_quotes=False):
    found = normalize_graph(tf.constant(texts), lower, join_quotes).numpy()
    return [text.decode("utf-8") for text in found]


@pytest.mark.parametrize(
    "text, lower, expected",
    [
        ("  a\t\u00a0b\x1c\u3000 c\n", True, "a b c"),
        ("Crème Brûlée", True, "creme brulee"),
        ("Crème", False, "Creme"),
        ("``Hi'' he said", True, "``hi'' he said"),
        ("ﬁ ½ Ⅷ", True, "fi 1⁄2 viii"),
        ("ΑΣ Σ", True, "ας σ"),
        ("İ", True, "i"),
        ("a\0b\ud800", True, "a\ufffdb\ufffd"),
        ("", True, ""),
        ("\u00a8", True, " "),  # NFKD comes after the whitespace is collapsed
    ],
)
def test_python_face(text, lower, expected):
    assert normalize(text, lower) == expected


MANY = ["Crème  Brûlée", "", "``Hi''", "a\0b", "tab\tand\x1cmore ", " \u00a8 ", "a\nand \u2028\n"]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=6), st.booleans(), st.booleans())
@example(MANY, True, False)
@example(MANY, True, True)
def test_many_at_once(texts, lower, join_quotes):
    found = normalize_many(texts, lower, join_quotes)
    assert found == [normalize(text, lower, join_quotes) for text in texts]


def test_quotes_are_joined_when_asked():
    text = "``Hi'' and ` and '''"
    assert normalize(text, join_quotes=True) == '"hi" and ` and "\''
    assert normalize(text) == "``hi'' and ` and '''"


@pytest.mark.parametrize("lower", [True, pytest.param(False, marks=pytest.mark.table)])
@pytest.mark.parametrize("end", [0x5000, pytest.param(sys.maxunicode + 1, marks=pytest.mark.table)])
def test_faces_are_equal_on_every_code_point(lower, end):
    codes = [c for c in range(end) if not 0xD800 <= c <= 0xDFFF]
    texts = [f"A{chr(code)}b" for code in codes]
    different = [
        hex(code)
        for code, text, found in zip(codes, texts, in_graph(texts, lower))
        if found != normalize(text, lower)
    ]
    assert not different, different


@pytest.mark.table
def test_only_rare_code_points_differ_from_the_reference():
    def reference(text):
        text = unicodedata.normalize("NFKD", " ".join(text.split()))
        return "".join(c for c in text if not unicodedata.combining(c)).lower()

    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
    different = [c for c in characters if normalize(c) != reference(c)]
    assert len(different) <= 230
    assert all(normalize(c) == "\ufffd" for c in different)
    assert [c for c in different if ord(c) < 0x2C00] == ["\0"]


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=8), st.booleans(), st.booleans())
@example([*MANY, "Hi'' '''x", "\x0b\x1c a\x1f \x1fb\x1e", "A\x1bB"], False, True)
def test_faces_are_equal_on_any_text(texts, lower, join_quotes):
    expected = [normalize(text, lower, join_quotes) for text in texts]
    assert in_graph(texts, lower, join_quotes) == expected


def test_graph_face_survives_bytes_that_are_not_utf8():
    [found] = normalize_graph(tf.constant([b"A\xff B"])).numpy()
    assert found.decode("utf-8") == "a\ufffd b"


def test_graph_face_takes_any_shape():
    assert normalize_graph(tf.constant([["A"], [" B "]])).numpy().tolist() == [[b"a"], [b"b"]]
