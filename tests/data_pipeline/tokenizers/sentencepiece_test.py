"""Both faces against an oracle, Hugging Face's tokenizer, each other and the published model."""

import json
import string
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from data_pipeline.errors import UserError
from data_pipeline.tokenizers.graph import GraphSentencePieceTokenizer
from data_pipeline.tokenizers.normalization import normalize
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer, is_word_start_piece
from tests.data_pipeline.tokenizers.every_kind_test import google_ids

HUGGING_FACE = Path(__file__).parents[2] / "goldens" / "hf_tokenizer"
SHARED = Path(__file__).parents[3].parent / "shared"
PUBLISHED_MODEL = SHARED / "data" / "spm" / "30k-clean.model"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NUMBERS = st.text(st.sampled_from(string.digits + ",. ab"), max_size=20)


@pytest.fixture(scope="module")
def graph_tokenizer(tokenizer):
    return GraphSentencePieceTokenizer(tokenizer)


def test_digit_comma_rule(vocab_file, tokenizer, lines):
    assert len(tokenizer.resplit) > 5, "the vocabulary should hold pieces such as '0,'"
    plain = SentencePieceTokenizer(vocab_file, rules="plain")
    sample = [f"in {year}, or 1,{year}, {year % 97}," for year in range(1950, 2050)] + lines[:300]
    processor = sentencepiece.SentencePieceProcessor(model_file=vocab_file)
    expected = [google_ids(processor, text) for text in sample]
    assert tokenizer.encode_batch(sample) == expected
    assert [tokenizer.encode(text) for text in sample] == expected
    assert sum(plain.encode(text) != tokenizer.encode(text) for text in sample) > 50


def test_hugging_faces_rules_give_its_ids():
    rows = [json.loads(line) for line in (HUGGING_FACE / "lines.jsonl").open(encoding="utf-8")]
    model, texts = str(HUGGING_FACE / "spiece.model"), [row["text"] for row in rows]
    python_face = SentencePieceTokenizer(model, rules="huggingface")
    assert [python_face.encode_pieces(text) for text in texts] == [row["pieces"] for row in rows]
    assert python_face.encode_batch(texts) == [row["ids"] for row in rows]
    graph_face = GraphSentencePieceTokenizer(python_face)
    assert graph_face.tokenize(tf.constant(texts)).to_list() == [row["ids"] for row in rows]
    google = SentencePieceTokenizer(model)
    assert sum(google.encode(row["text"]) != row["ids"] for row in rows) > 20


def test_pieces_spell_the_ids(tokenizer, lines):
    for text in ["in 2010, and 7,", *lines[:200]]:
        pieces, ids = tokenizer.encode_pieces(text), tokenizer.encode(text)
        named = tokenizer.ids_to_pieces(ids)
        assert len(pieces) == len(named)
        assert all(a == b or b == "<unk>" for a, b in zip(pieces, named))


def test_special_pieces_and_literal_mask(tokenizer):
    assert tokenizer.special_ids == (0, 1, 2, 3, 4)
    assert tokenizer.mask_id not in tokenizer.encode("a literal [MASK] in text")


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(st.one_of(TEXT, NUMBERS), min_size=1, max_size=8))
def test_faces_are_equal_on_any_text(tokenizer, graph_tokenizer, texts):
    ids = graph_tokenizer.tokenize(tf.constant(texts)).to_list()
    assert ids == [tokenizer.encode(text) for text in texts]


def test_graph_face_survives_a_new_global_seed(graph_tokenizer, tokenizer):
    """tf.random.set_seed clears op kernels, and with them TF Text's own resource."""
    in_function = tf.function(graph_tokenizer.tokenize)
    text = tf.constant(["in 2010, here"])
    in_function(text)
    tf.random.set_seed(3)
    expected = [tokenizer.encode("in 2010, here")]
    assert in_function(text).to_list() == graph_tokenizer.tokenize(text).to_list() == expected


def test_graph_face_is_saved_with_its_vocabulary(tmp_path, tokenizer, graph_tokenizer, lines):
    class TextIn(tf.Module):
        def __init__(self):
            super().__init__()
            self.tokenizer = graph_tokenizer

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def __call__(self, text):
            return self.tokenizer.tokenize(text).to_tensor()

    tf.saved_model.save(TextIn(), str(tmp_path / "saved"))
    found = tf.saved_model.load(str(tmp_path / "saved"))(tf.constant(lines[:20])).numpy()
    for row, text in zip(found, lines):
        ids = tokenizer.encode(text)
        np.testing.assert_array_equal(row[: len(ids)], ids)
    [asset] = (tmp_path / "saved" / "assets").iterdir()
    assert asset.read_bytes() == Path(tokenizer.vocab_file).read_bytes()


@pytest.mark.parametrize(
    "pieces, starts",
    [
        (["▁the", "▁", "<unk>", ",", "£", "10", "'", "'s", "=", "é", "日"], True),
        (["ing", "s", "x", "..", ").", "[MASK]"], False),
    ],
)
def test_word_starts(pieces, starts):
    assert all(is_word_start_piece(piece) == starts for piece in pieces)


def test_bad_vocabularies_are_named(tmp_path):
    for content in (b"", b"piece\t-1\n"):
        (tmp_path / "x.vocab").write_bytes(content)
        with pytest.raises(UserError, match=r"x.vocab is not a SentencePiece model"):
            SentencePieceTokenizer(str(tmp_path / "x.vocab"))


@pytest.mark.parametrize("name, lower", [("lower", True), ("cased", False)])
def test_published_vocabulary_gives_the_references_ids(name, lower):
    golden = SHARED / "golden" / "tokenizer" / f"{name}.jsonl"
    if not (golden.exists() and PUBLISHED_MODEL.exists()):
        pytest.skip(f"NOT TESTED against the published vocabulary: {golden} or its model is absent")
    rows = [json.loads(line) for line in golden.read_text(encoding="utf-8").splitlines()]
    python_face = SentencePieceTokenizer(str(PUBLISHED_MODEL), lower)
    texts = [row["text"] for row in rows]
    assert [normalize(text, lower) for text in texts] == [row["normalized"] for row in rows]
    assert [python_face.encode_pieces(text) for text in texts] == [row["pieces"] for row in rows]
    assert python_face.encode_batch(texts) == [row["ids"] for row in rows]
    graph_face = GraphSentencePieceTokenizer(python_face)
    assert graph_face.tokenize(tf.constant(texts)).to_list() == [row["ids"] for row in rows]
