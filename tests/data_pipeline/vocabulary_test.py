"""A vocabulary is laid out as 30k-clean.model, reproducible, and refused with the largest size."""

import json
import re
from pathlib import Path

import pytest

from data_pipeline.errors import UserError
from data_pipeline.tokenization import load_tokenizer
from data_pipeline.vocabulary import train_vocabulary

LAYOUT = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "(", ")", '"', "-", ".", "–", "£", "€"]


def test_layout_and_files(vocab_file, tokenizer):
    folder = Path(vocab_file).parent
    assert tokenizer.pieces[:13] == LAYOUT and tokenizer.vocab_size == 2500
    assert sorted(entry.name for entry in folder.iterdir()) == [
        "spiece.model", "spiece.vocab", "tokenizer_settings.json", "vocabulary.json",
    ]  # fmt: skip
    listed = (folder / "spiece.vocab").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in listed] == tokenizer.pieces
    manifest = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
    assert manifest["vocab_fingerprint"] == tokenizer.fingerprint
    assert not any(re.search("[A-Z]", piece) for piece in tokenizer.pieces[5:])


def test_same_text_gives_the_same_bytes(tmp_path, small_file):
    first, again = (train_vocabulary(small_file, str(tmp_path / name), 400) for name in "ab")
    assert Path(first).read_bytes() == Path(again).read_bytes()


def test_case_is_kept_on_request(tmp_path, small_file):
    path = train_vocabulary(small_file, str(tmp_path / "cased"), 400, lower=False, rules="plain")
    cased = load_tokenizer(path)
    assert not cased.lower and cased.settings.rules == "plain"
    assert any(re.search("[A-Z]", piece) for piece in cased.pieces[5:])


def test_too_large_names_the_largest_size(tmp_path, small_file):
    with pytest.raises(UserError, match="--vocab_size=90000 is too large") as caught:
        train_vocabulary(small_file, str(tmp_path / "a"), 90_000)
    largest = int(re.search(r"at most (\d+)", str(caught.value))[1])
    assert (
        load_tokenizer(train_vocabulary(small_file, str(tmp_path / "a"), largest)).vocab_size
        == largest
    )


def test_bad_input(tmp_path, small_file):
    with pytest.raises(UserError, match="--vocab_size=20 is too small"):
        train_vocabulary(small_file, str(tmp_path / "a"), 20)
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(UserError, match="no text"):
        train_vocabulary(str(tmp_path / "empty.txt"), str(tmp_path / "a"), 400)
    (tmp_path / "late.txt").write_bytes("zz\n".encode("utf-16"))
    with pytest.raises(UserError, match=r"late.txt is UTF-16"):  # found while SentencePiece reads
        train_vocabulary([small_file, str(tmp_path / "late.txt")], str(tmp_path / "a"), 400)
    assert not (tmp_path / "a").exists()
    path = train_vocabulary(small_file, str(tmp_path / "a"), 400)
    with pytest.raises(UserError, match=r"exists already.*--overwrite"):
        train_vocabulary(small_file, str(tmp_path / "a"), 400)
    assert train_vocabulary(small_file, str(tmp_path / "a"), 300, overwrite=True) == path
