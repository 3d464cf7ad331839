"""Documents as flat arrays: boundaries, words, long sentences, spelled out."""

import numpy as np
import pytest

from data_pipeline.pretraining.tokenized import (
    TokenizedDocuments,
    concatenate,
    split_long_sentences,
    tokenize,
)
from data_pipeline.tokenizers.base import flatten


class Codes:
    """A stand-in for a tokenizer: letters become code points; capitals start words."""

    is_word_start = np.array([chr(code).isupper() for code in range(128)])

    def encode_flat(self, texts):
        return flatten([list(text.strip().encode()) for text in texts])


def parts_of(made):
    """Text of the sentences of each document."""
    text = bytes(made.ids.tolist()).decode()
    sentences = [text[i:j] for i, j in zip(made.sentences, made.sentences[1:])]
    return [sentences[i:j] for i, j in zip(made.documents, made.documents[1:])]


def test_documents_become_ids():
    made = tokenize([["Ab", "c"], [], ["De F"]], Codes())
    assert made.ids.tolist() == [65, 98, 99, 68, 101, 32, 70]
    assert made.sentences.tolist() == [0, 2, 3, 7] and made.documents.tolist() == [0, 2, 2, 3]
    assert made.starts_word.tolist() == [True, False, False, True, False, False, True]
    assert (made.num_documents, made.num_sentences) == (3, 3)
    assert made.ids.dtype == np.int32
    assert made.sentences.dtype == made.documents.dtype == np.int64


def test_sentences_without_ids_are_left_out():
    made = tokenize([["", "A", " "], [" "], ["B", "", "C"]], Codes())
    assert parts_of(made) == [["A"], [], ["B", "C"]]
    assert made.sentences.tolist() == [0, 1, 2, 3] and made.documents.tolist() == [0, 1, 1, 3]


def test_no_documents():
    made = tokenize([], Codes())
    assert (made.num_documents, made.num_sentences, len(made.ids)) == (0, 0, 0)


def test_ids_may_be_found_in_another_way():
    made = tokenize([["A"]], Codes(), lambda texts: flatten([[66, 67] for _ in texts]))
    assert parts_of(made) == [["BC"]]


def test_parts_are_joined():
    documents = [["Ab", "c"], [], ["De", "f"], ["G"]]
    for cut in range(5):
        parts = documents[:cut], documents[cut:]
        joined = concatenate([tokenize(part, Codes()) for part in parts])
        whole = tokenize(documents, Codes())
        for name in ("ids", "sentences", "documents", "starts_word"):
            assert getattr(joined, name).tolist() == getattr(whole, name).tolist()
            assert getattr(joined, name).dtype == getattr(whole, name).dtype


@pytest.mark.parametrize(
    "sentences, limit, expected",
    [
        (["AbcDef"], 6, ["AbcDef"]),
        (["AbcDef"], 5, ["Abc", "Def"]),
        (["AbcDef"], 3, ["Abc", "Def"]),
        (["AbcDef"], 2, ["Ab", "c", "De", "f"]),
        (["ABCDE"], 2, ["AB", "CD", "E"]),
        (["abcdefg"], 3, ["abc", "def", "g"]),
        (["x", "AbCd", "y"], 3, ["x", "Ab", "Cd", "y"]),
        (["AbCdEf", "GhIj"], 3, ["Ab", "Cd", "Ef", "Gh", "Ij"]),
    ],
)
def test_long_sentences_are_cut_before_words(sentences, limit, expected):
    """Before the last word that begins within the limit, or right behind it."""
    before = tokenize([["q"], sentences, [], ["z"]], Codes())
    after = split_long_sentences(before, limit)
    assert parts_of(after) == [["q"], expected, [], ["z"]]
    assert after.ids is before.ids and after.starts_word is before.starts_word


def test_short_sentences_stay_the_same_object():
    before = TokenizedDocuments(np.arange(4), np.array([0, 4]), np.array([0, 1]), np.ones(4, bool))
    assert split_long_sentences(before, 4) is before
    assert split_long_sentences(before, 3) is not before
