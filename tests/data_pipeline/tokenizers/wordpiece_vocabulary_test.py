"""Words are counted and pieces learned: literal text before and after."""

import re

import pytest

from data_pipeline.errors import UserError
from data_pipeline.tokenizers import wordpiece_vocabulary
from data_pipeline.tokenizers.base import TokenizerSettings
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer
from data_pipeline.tokenizers.wordpiece_vocabulary import learn_pieces, word_counts

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LOWER = WordPieceTokenizer.resolve(TokenizerSettings())
CASED = WordPieceTokenizer.resolve(TokenizerSettings(lower=False))


def test_words_are_counted():
    sentences = ["The cat, the 猫猫!", "Café cafe"]
    assert word_counts(sentences, LOWER) == {
        "the": 2, "cat": 1, ",": 1, "猫": 2, "!": 1, "cafe": 2,
    }  # fmt: skip
    assert word_counts(sentences, CASED) == {
        "The": 1, "the": 1, "cat": 1, ",": 1, "猫": 2, "!": 1, "Café": 1, "cafe": 1,
    }  # fmt: skip
    assert word_counts([], LOWER) == {}


@pytest.mark.parametrize("at_once", [1, 2, 3, 5, 100])
def test_sentences_are_counted_some_at_a_time(monkeypatch, at_once):
    monkeypatch.setattr(wordpiece_vocabulary, "_SENTENCES_AT_ONCE", at_once)
    sentences = iter(["a b", "b", "c a", "a", "d"])
    assert word_counts(sentences, LOWER) == {"a": 3, "b": 2, "c": 1, "d": 1}


def test_of_too_many_words_those_seen_once_go(monkeypatch):
    monkeypatch.setattr(wordpiece_vocabulary, "_SENTENCES_AT_ONCE", 1)
    monkeypatch.setattr(wordpiece_vocabulary, "_MAX_WORDS", 2)
    assert word_counts(["a b", "a"], LOWER) == {"a": 2, "b": 1}
    assert word_counts(["a a b c", "b"], LOWER) == {"a": 2, "b": 1}


def test_the_order_of_the_pieces():
    words = {"ab": 9, "abc": 3, "cab": 1, "!": 2, "猫": 1}
    fixed = [*SPECIAL, "!", "猫", "a", "b", "c", "##a", "##b", "##c"]
    assert learn_pieces(words, 13, 1.0) == fixed
    assert learn_pieces(words, 14, 1.0) == [*fixed, "##ab"]
    with pytest.raises(UserError, match=r"^--vocab_size=12 is too small: .* alone need 13\. Raise"):
        learn_pieces(words, 12, 1.0)
    with pytest.raises(UserError, match=r"^--vocab_size=99 is too large for the text: ") as error:
        learn_pieces(words, 99, 1.0)
    most = int(re.search(r"at most (\d+) pieces", str(error.value))[1])
    pieces = learn_pieces(words, most, 1.0)
    assert len(pieces) == len(set(pieces)) == most and {"ab", "abc"} <= set(pieces)
    with pytest.raises(UserError, match=f"at most {most} "):
        learn_pieces(words, most + 1, 1.0)


def test_frequent_pairs_come_first():
    words = {"xyz": 2, "xyw": 2, "vu": 3, "axy": 1}
    pieces = learn_pieces(words, 5 + 14 + 2, 1.0)
    assert pieces[5:12] == list("auvwxyz") and pieces[12:19] == [f"##{c}" for c in "auvwxyz"]
    assert pieces[19:] == ["##xy", "xy"], "in five words, and at the beginning of four"


def test_rare_characters_get_no_piece():
    words = {"a": 6, "b": 3, "c": 1}
    assert learn_pieces(words, 9, 0.9) == [*SPECIAL, "a", "b", "##a", "##b"]
    assert learn_pieces(words, 11, 0.91) == [*SPECIAL, *"abc", "##a", "##b", "##c"]
    assert learn_pieces({"!": 6, "?": 3, "猫": 1}, 7, 0.9) == [*SPECIAL, "!", "?"]
    # Of characters that are as frequent as each other, the first ones by code point.
    assert learn_pieces({"d": 1, "c": 1, "b": 1}, 9, 0.5) == [*SPECIAL, "b", "c", "##b", "##c"]


def test_words_of_more_than_200_characters_teach_nothing():
    assert learn_pieces({"a" * 200: 1, "b" * 201: 1}, 7, 1.0) == [*SPECIAL, "a", "##a"]
    assert learn_pieces({"b" * 201: 1}, 5, 1.0) == SPECIAL
