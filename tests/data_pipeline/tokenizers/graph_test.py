"""Tokenizers in graphs, on a few literal texts; the faces are compared at length beside them."""

import json
from pathlib import Path

import pytest
import tensorflow as tf

from data_pipeline.tokenizers.graph import (
    GraphSentencePieceTokenizer,
    GraphWordPieceTokenizer,
    graph_class,
    graph_tokenizer,
    normalize_graph,
)
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer

GOLDENS = Path(__file__).parents[2] / "goldens"
MODEL = str(GOLDENS / "hf_tokenizer" / "spiece.model")
VOCABULARY = str(GOLDENS / "wordpiece" / "vocab.txt")


@pytest.fixture(scope="module")
def lines():
    with (GOLDENS / "hf_tokenizer" / "lines.jsonl").open(encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file][:40]
    return [*texts, "in 2010, or 7,", "1,234, ``5,''", "", " ", "A\0B"]


def decoded(strings):
    return [string.decode("utf-8") for string in strings.numpy().reshape(-1)]


def test_classes_of_characters():
    assert graph_class([(0x41, 0x43), (0x3B1, 0x3B1)]) == r"[\x{41}-\x{43}\x{3b1}-\x{3b1}]"
    pattern = graph_class([(0x41, 0x43), (0x3B1, 0x3B1)])
    assert decoded(tf.strings.regex_replace(["xABCDα"], pattern, "-")) == ["x---D-"]


def test_defaults_lower_the_text_and_leave_quotes():
    assert decoded(normalize_graph(tf.constant(["``É''"]))) == ["``e''"]


@pytest.mark.parametrize("rules", ["google", "huggingface", "plain"])
@pytest.mark.parametrize("lower", [True, False])
def test_sentencepiece_gives_the_ids_of_its_python_face(lines, rules, lower):
    python_face = SentencePieceTokenizer(MODEL, lower, rules)
    assert python_face.resplit or rules == "plain"
    graph_face, texts = graph_tokenizer(python_face), tf.constant(lines)
    assert isinstance(graph_face, GraphSentencePieceTokenizer)
    found = graph_face.tokenize(texts)
    assert found.dtype == tf.int32 and found.to_list() == python_face.encode_batch(lines)


def test_wordpiece_gives_the_ids_of_its_python_face(lines):
    python_face = WordPieceTokenizer(VOCABULARY)
    graph_face = graph_tokenizer(python_face)
    assert isinstance(graph_face, GraphWordPieceTokenizer)
    texts = [*lines, "我们在2010年。", "s" * 200, "s" * 201, "é" * 200, "😀" * 200, "a 🂡 b"]
    found = graph_face.tokenize(tf.constant(texts))
    assert found.dtype == tf.int32 and found.to_list() == python_face.encode_batch(texts)
    assert found.row_lengths()[len(lines) + 1 :][:2].numpy().tolist() == [200, 1]


def test_vocabularies_travel_with_the_graph():
    for path, kind in ((MODEL, SentencePieceTokenizer), (VOCABULARY, WordPieceTokenizer)):
        assert graph_tokenizer(kind(path)).vocabulary.asset_path.numpy().decode() == path
