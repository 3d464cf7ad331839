"""Word by word equals sentence by sentence, for every model, text and rule."""

import gzip
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from data_pipeline.tokenizers.fast import word_cache
from data_pipeline.tokenizers.fast.encoder import fast_encoder
from data_pipeline.tokenizers.loading import load_tokenizer
from data_pipeline.tokenizers.normalization import combining_ranges, ranges_where, whitespace_ranges
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer

SHARED = Path(__file__).parents[4].parent / "shared" / "data"
PUBLISHED_MODEL = SHARED / "spm" / "30k-clean.model"
WORDPIECE = Path(__file__).parents[3] / "goldens" / "wordpiece" / "vocab.txt"
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=40)
WORDS = st.text(st.sampled_from("aeinorst THE .,-()\"'12–é’\u00a0\t\x85▁"), max_size=60)


def assert_equal(tokenizer, texts):
    found, expected = fast_encoder(tokenizer)(texts), tokenizer.encode_flat(texts)
    np.testing.assert_array_equal(found.lengths, expected.lengths)
    np.testing.assert_array_equal(found.ids, expected.ids)
    assert found.ids.dtype == np.int32


@pytest.fixture(scope="module", params=["google", "huggingface", "plain", "cased", "wordpiece"])
def any_tokenizer(request, vocab_file):
    if request.param == "wordpiece":
        return load_tokenizer(str(WORDPIECE))
    if request.param == "cased":
        return SentencePieceTokenizer(vocab_file, lower=False)
    return SentencePieceTokenizer(vocab_file, rules=request.param)


@settings(max_examples=100, deadline=None)  # Of each tokenizer.
@given(st.lists(TEXT | WORDS, max_size=5))
@example([f"0{chr(code)}0" for code in range(128) if chr(code) != "\n"])
def test_any_text(any_tokenizer, texts):
    assert_equal(any_tokenizer, texts)


def test_real_lines(any_tokenizer, lines):
    assert_equal(any_tokenizer, lines)
    assert_equal(any_tokenizer, [" ".join(lines[:400]), "", lines[0]])


def test_most_words_are_sure(tokenizer, lines):
    """Otherwise nothing would be gained."""
    calls, encode = [], tokenizer.encode_normalized
    fresh = SentencePieceTokenizer(tokenizer.vocab_file)
    fresh.encode_normalized = lambda texts: calls.extend(texts) or encode(texts)
    fast_encoder(fresh)(lines)
    assert len(calls) < 0.1 * len(lines)


def test_a_full_cache_is_emptied(tokenizer, lines, monkeypatch):
    monkeypatch.setattr(word_cache, "MAX_WORDS", 50)
    monkeypatch.setattr(word_cache, "_CHUNK_CHARACTERS", 1000)
    assert_equal(SentencePieceTokenizer(tokenizer.vocab_file), lines[:500])


def test_tables_grow(monkeypatch):
    monkeypatch.setattr(word_cache, "_SMALLEST_TABLE", 4)
    table = word_cache._HashTable()
    hashes = np.random.default_rng(0).integers(1, 1 << 63, 1000).astype(np.uint64)
    hashes[:500] = hashes[:500] << np.uint64(20) | np.uint64(3)  # All begin at one slot.
    for start in range(0, 1000, 100):
        table.add(hashes[start : start + 100], np.arange(start, start + 100))
    assert table.get(hashes).tolist() == list(range(1000)) and len(table) == 1000
    assert table.get(np.array([5, 7], np.uint64)).tolist() == [-1, -1]


def test_ranges_are_complete():
    assert combining_ranges() == ranges_where(lambda c: unicodedata.combining(c) != 0)
    assert whitespace_ranges() == ranges_where(str.isspace)
    assert all(word_cache._IS_SPACE[ord(c)] == c.isspace() for c in map(chr, range(128)))


@pytest.mark.skipif(not PUBLISHED_MODEL.exists(), reason=f"SKIPPED: {SHARED} IS ABSENT")
def test_the_published_model_on_wikipedia():
    with gzip.open(SHARED / "corpus" / "wiki_sentences.txt.gz", "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line, _ in zip(file, range(8_000))]
    assert_equal(SentencePieceTokenizer(str(PUBLISHED_MODEL)), lines)
