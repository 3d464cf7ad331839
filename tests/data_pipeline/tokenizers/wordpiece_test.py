"""Both faces against Hugging Face's BertTokenizer, and against each other."""

import json
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.errors import UserError
from data_pipeline.tokenizers.fast.encoder import fast_encoder
from data_pipeline.tokenizers.graph import GraphWordPieceTokenizer, split_words_graph
from data_pipeline.tokenizers.wordpiece import (
    IDEOGRAPHS,
    WordPieceTokenizer,
    dropped_ranges,
    set_ideographs_apart,
    space_ranges,
    split_words,
)

GOLDEN = Path(__file__).parents[2] / "goldens" / "wordpiece"
VOCABULARY = str(GOLDEN / "vocab.txt")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
WORDS = st.text(st.sampled_from("abdegnst 你好，.201İΣ'-"), max_size=30)


@pytest.fixture(scope="module")
def faces():
    python_face = WordPieceTokenizer(VOCABULARY)
    return python_face, GraphWordPieceTokenizer(python_face)


@pytest.mark.parametrize("lower", [True, False])
def test_golden_lines(lower):
    rows = [json.loads(line) for line in (GOLDEN / "lines.jsonl").open(encoding="utf-8")]
    rows = [row for row in rows if row["lower"] == lower]
    texts, ids = [row["text"] for row in rows], [row["ids"] for row in rows]
    python_face = WordPieceTokenizer(VOCABULARY, lower)
    assert [python_face.encode_pieces(text) for text in texts] == [row["pieces"] for row in rows]
    assert python_face.encode_batch(texts) == ids
    assert GraphWordPieceTokenizer(python_face).tokenize(tf.constant(texts)).to_list() == ids


@pytest.mark.parametrize("lower", [True, pytest.param(False, marks=pytest.mark.table)])
@pytest.mark.parametrize("end", [0x5000, pytest.param(sys.maxunicode + 1, marks=pytest.mark.table)])
def test_words_are_equal_on_every_code_point(lower, end):
    codes = [code for code in range(end) if not 0xD800 <= code <= 0xDFFF]
    texts = [
        " ".join(f"A{chr(code)}b" for code in codes[start : start + 50])
        for start in range(0, len(codes), 50)
    ]
    in_graph = split_words_graph(tf.constant(texts), lower).to_list()
    different = [
        ascii(text)
        for text, found in zip(texts, in_graph)
        if [word.decode("utf-8") for word in found] != [*filter(None, split_words(text, lower))]
    ]
    assert not different, different


@pytest.mark.parametrize("lower", [True, False])
def test_ideographs_set_apart_leave_the_words_as_they_are(lower):
    """Code points at the borders of what is treated alike, between letters and ideographs."""
    ranges = (*space_ranges(), *dropped_ranges(), *IDEOGRAPHS, (0xD800, 0xDFFF))
    codes = {code + step for pair in ranges for code in pair for step in (-1, 0, 1)}
    codes = sorted({*codes, *range(0, sys.maxunicode, 997)} & {*range(sys.maxunicode + 1)} - {10})
    texts = [
        " ".join(f"A{chr(code)}b你{chr(code)}好" for code in codes[start : start + 500])
        for start in range(0, len(codes), 500)
    ]
    for text, apart in zip(texts, set_ideographs_apart(texts)):
        assert split_words(apart, lower) != [] and [*filter(None, split_words(apart, lower))] == [
            *filter(None, split_words(text, lower))
        ]
    assert set_ideographs_apart(["ab你好\t!", "", "c"]) == ["ab 你  好  !", "", "c"]
    assert set_ideographs_apart([]) == []


def test_runs_of_chinese_are_looked_up():
    """Ideographs are covered with pieces once each; whole sentences are never."""
    tokenizer, seen = WordPieceTokenizer(VOCABULARY), []
    encode = tokenizer.encode
    tokenizer.encode = lambda text: seen.append(text) or encode(text)
    sentences = ["我们今天在公园里看到很多人，他们都在说话。" * 5] * 100
    found = fast_encoder(tokenizer)(sentences)
    assert found.ids.tolist() == encode(sentences[0]) * 100
    assert len(seen) <= 25 and max(map(len, seen)) == 1


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(st.one_of(TEXT, WORDS), min_size=1, max_size=8))
def test_faces_are_equal_on_any_text(faces, texts):
    python_face, graph_face = faces
    expected = [python_face.encode(text) for text in texts]
    assert graph_face.tokenize(tf.constant(texts)).to_list() == expected


def test_bytes_that_are_no_text_go_away(faces):
    python_face, graph_face = faces
    [found] = graph_face.tokenize(tf.constant([b"a\xff\xfe b"])).to_list()
    assert found == python_face.encode("a b")


def test_word_starts(faces):
    python_face, _ = faces
    starts = dict(zip(python_face.pieces, python_face.is_word_start))
    assert starts["我"] and starts["the"] and not starts["##ing"]


def test_bad_vocabularies_are_named(tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"vocab.txt is not a WordPiece vocabulary"):
        WordPieceTokenizer(str(tmp_path / "vocab.txt"))
