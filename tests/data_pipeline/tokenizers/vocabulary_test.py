"""A vocabulary is laid out as 30k-clean.model, reproducible, and refused with the largest size."""

import json
from pathlib import Path

import pytest

from data_pipeline.corpus.documents import Corpus
from data_pipeline.errors import UserError
from data_pipeline.tokenizers.base import TokenizerSettings
from data_pipeline.tokenizers.loading import load_tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary


def test_files(vocab_file, tokenizer):
    folder = Path(vocab_file).parent
    assert tokenizer.vocab_size == 2500
    assert sorted(entry.name for entry in folder.iterdir()) == [
        "spiece.model", "spiece.vocab", "tokenizer_settings.json", "vocabulary.json",
    ]  # fmt: skip
    manifest = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
    assert manifest["vocab_fingerprint"] == tokenizer.fingerprint


@pytest.mark.parametrize("tokenizer, size", [("sentencepiece", 36), ("wordpiece", 48)])
def test_a_vocabulary_is_learned_from_text_as_its_settings_clean_it(tmp_path, tokenizer, size):
    (tmp_path / "a.txt").write_text("Ça va, déjà vu: là où ça était prêté. 今天天\n" * 9)
    settings = TokenizerSettings(lower=False, strip_accents=False)
    options = {"settings": settings, "tokenizer": tokenizer, "character_coverage": 1.0}
    path = train_vocabulary(str(tmp_path / "a.txt"), str(tmp_path / "v"), size, **options)
    french = load_tokenizer(path)
    assert french.settings.strip_accents is False
    assert {"Ç", "é", "ê"} <= set("".join(french.pieces))
    assert french.unk_id not in french.encode("Ça déjà prêté")


def test_bad_input(tmp_path, small_file):
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(UserError, match="no text"):
        train_vocabulary(str(tmp_path / "empty.txt"), str(tmp_path / "a"), 400)
    assert not (tmp_path / "a").exists()
    path = train_vocabulary(small_file, str(tmp_path / "a"), 400)
    with pytest.raises(UserError, match=r"exists already.*--overwrite"):
        train_vocabulary(small_file, str(tmp_path / "a"), 400)
    with pytest.raises(UserError, match=r"spiece.model exists already"):  # One folder has settings.
        train_vocabulary(small_file, str(tmp_path / "a"), 700, tokenizer="wordpiece")
    assert train_vocabulary(small_file, str(tmp_path / "a"), 300, overwrite=True) == path
    other = {"tokenizer": "wordpiece", "overwrite": True}
    words = train_vocabulary(small_file, str(tmp_path / "a"), 700, **other)
    assert words.endswith("vocab.txt") and not Path(path).exists()
    assert not Path(path).with_name("spiece.vocab").exists()


def test_wordpiece_vocabularies(tmp_path, small_file):
    """The layout of published ones, the size that is asked for, the same bytes again."""
    first, again = (
        train_vocabulary(small_file, str(tmp_path / name), 700, tokenizer="wordpiece")
        for name in "ab"
    )
    assert first.endswith("/a/vocab.txt") and Path(first).read_bytes() == Path(again).read_bytes()
    tokenizer = load_tokenizer(first)
    pieces = tokenizer.pieces
    assert pieces[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert len(pieces) == len(set(pieces)) == 700
    assert "##." not in pieces and {"e", "##e", ".", "the"} <= set(pieces)
    text = Path(small_file).read_text(encoding="utf-8")
    ids = [i for line in text.splitlines() for i in tokenizer.encode(line)]
    assert ids.count(tokenizer.unk_id) < 0.002 * len(ids)
    assert len(ids) < 0.6 * len(text.replace(" ", "")), "the longer pieces serve"
    manifest = json.loads((tmp_path / "a" / "vocabulary.json").read_text(encoding="utf-8"))
    assert manifest["tokenizer"] == "wordpiece" and manifest["vocab_fingerprint"]


def test_rules_of_the_other_kind_are_refused(tmp_path, small_file):
    rules = TokenizerSettings(rules="huggingface")
    with pytest.raises(UserError, match="--rules=huggingface works only with --tokenizer=s"):
        train_vocabulary(small_file, str(tmp_path), 400, tokenizer="wordpiece", settings=rules)


def test_field_and_language_of_the_text(tmp_path):
    """Chinese sentences are found; each ideograph of any of them is a piece."""
    row = {"content": "今天天气很好。我们去公园！你来吗？", "text": "english words only"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row), encoding="utf-8")
    corpus = Corpus(str(tmp_path / "a.jsonl"), text_field="content", language="zh")
    options = {"tokenizer": "wordpiece", "character_coverage": 1.0}
    path = train_vocabulary(corpus, str(tmp_path / "v"), 21, **options)
    assert set(load_tokenizer(path).pieces[5:]) == set(row["content"])
