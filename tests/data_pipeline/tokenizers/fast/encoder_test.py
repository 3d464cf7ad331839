"""The fast encoder for each kind of tokenizer: the same ids, and each word tokenized once."""

from pathlib import Path

import numpy as np

from data_pipeline.tokenizers.base import FlatIds
from data_pipeline.tokenizers.fast.encoder import fast_encoder
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer

GOLDENS = Path(__file__).parents[3] / "goldens"
MODEL = str(GOLDENS / "hf_tokenizer" / "spiece.model")


def spied(tokenizer, name):
    """The texts that a method of the tokenizer is asked for, from now on."""
    asked, method = [], getattr(tokenizer, name)

    def spy(texts):
        asked.extend([texts] if isinstance(texts, str) else texts)
        return method(texts)

    setattr(tokenizer, name, spy)
    return asked


def assert_equal(found, expected):
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.lengths.tolist() == expected.lengths.tolist()
    assert found.ids.dtype == np.int32


def test_long_sentences_are_encoded_as_a_whole():
    """More than 1,024 characters may add up to another rounding."""
    tokenizer = SentencePieceTokenizer(MODEL)
    texts = ["a " * 511 + "ab", "a " * 512 + "b", "a"]
    assert [len(text) for text in texts] == [1024, 1025, 1]
    expected = tokenizer.encode_flat(texts)
    asked = spied(tokenizer, "encode_normalized")
    assert_equal(fast_encoder(tokenizer)(texts), expected)
    assert asked == [texts[1]]


def test_wordpiece_looks_each_short_word_up():
    """Words of more than 32 characters come with their sentence, each time."""
    tokenizer = WordPieceTokenizer(str(GOLDENS / "wordpiece" / "vocab.txt"))
    longest, too_long = "s" * 32, "s" * 33
    known, unknown = ["a b a", f"b {longest}"], [f"a {too_long}", "b"]
    expected = [tokenizer.encode_flat(texts) for texts in (known, unknown)]
    asked, encode = spied(tokenizer, "encode"), fast_encoder(tokenizer)
    assert_equal(encode(known), expected[0])
    assert sorted(asked) == ["a", "b", longest]
    asked.clear()
    assert_equal(encode(known), expected[0])
    assert asked == []
    for _ in range(2):
        assert_equal(encode(unknown), expected[1])
    assert asked == [f"a {too_long}"] * 2


def test_other_kinds_keep_their_own_method():
    found = FlatIds(np.zeros(0, np.int32), np.zeros(0, np.int64))

    class Other:
        def encode_flat(self, texts):
            assert texts == ["a"]
            return found

    assert fast_encoder(Other())(["a"]) is found


def test_an_encoder_is_kept_with_what_it_remembers():
    tokenizer = WordPieceTokenizer(str(GOLDENS / "wordpiece" / "vocab.txt"))
    assert fast_encoder(tokenizer) is fast_encoder(tokenizer)
