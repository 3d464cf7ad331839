"""Settings beside a vocabulary, special pieces, and what every tokenizer can do."""

import hashlib
import json

import numpy as np
import pytest

from data_pipeline.errors import UserError
from data_pipeline.tokenizers.base import Tokenizer, TokenizerSettings, flatten


class Letters(Tokenizer):
    """A piece for each letter, one a line; capitals start words."""

    STORED_NAME = "letters.txt"
    SPECIAL_PIECES = ("<p>", "<u>", "<c>", "<s>", "<m>")

    def _load(self, content):
        return content.decode().split()

    def _prepare(self):
        pass

    def _starts_word(self, piece):
        return piece.isupper()

    def encode(self, text):
        return [self.pieces.index(letter) for letter in text]

    def encode_pieces(self, text):
        return list(text)


@pytest.fixture
def vocab_file(tmp_path):
    (tmp_path / "letters.txt").write_text("a\n<u>\nB\n<m>\n<p>\n<s>\n<c>\nc\n")
    return tmp_path / "letters.txt"


@pytest.fixture
def letters(vocab_file):
    return Letters(vocab_file, lower=False)


def test_settings_come_back_from_their_file(tmp_path):
    path = tmp_path / "settings.json"
    for settings in (TokenizerSettings(), TokenizerSettings(False, "plain", True, False)):
        path.write_bytes(settings.json_bytes("5e"))
        assert TokenizerSettings.from_json(str(path)) == (settings, "5e")
    path.write_text('{"lower": false, "rules": "plain"}')  # As earlier versions wrote it.
    assert TokenizerSettings.from_json(str(path)) == (TokenizerSettings(False, "plain"), None)


@pytest.mark.parametrize(
    "value",
    [
        *({"lower": True}, {"lower": True, "rules": "google", "more": 1}),
        *({"lower": "yes", "rules": "google"}, {"lower": None, "rules": "google"}),
        *([], ["lower", "rules"], None),
    ],
)
def test_files_with_other_fields_are_refused(tmp_path, value):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(value))
    with pytest.raises(UserError, match=r"settings.json: (lower|the file) should .* Copy it again"):
        TokenizerSettings.from_json(str(path))


def test_rules_are_known_ones():
    message = "^tokenizer rules should be one of google, huggingface, plain; received 'other'"
    with pytest.raises(UserError, match=message):
        TokenizerSettings(rules="other")


def test_lists_of_ids_as_arrays():
    found = flatten([[5, 6], [], [7]])
    assert found.ids.tolist() == [5, 6, 7] and found.lengths.tolist() == [2, 0, 1]
    assert (found.ids.dtype, found.lengths.dtype) == (np.int32, np.int64)
    nothing = flatten([])
    assert len(nothing.ids) == len(nothing.lengths) == 0


def test_special_pieces_are_found_wherever_they_are(letters, vocab_file):
    assert letters.pieces == ["a", "<u>", "B", "<m>", "<p>", "<s>", "<c>", "c"]
    assert letters.vocab_size == 8 and letters.vocab_file == str(vocab_file)
    assert (letters.pad_id, letters.unk_id, letters.cls_id) == (4, 1, 6)
    assert (letters.sep_id, letters.mask_id) == (5, 3)
    assert letters.special_ids == (4, 1, 6, 5, 3)
    assert letters.is_word_start.tolist() == [i == 2 for i in range(8)]
    assert letters.fingerprint == hashlib.sha256(vocab_file.read_bytes()).hexdigest()
    assert letters.content() == vocab_file.read_bytes() and letters.settings.lower is False


def test_many_texts_are_encoded_one_by_one(letters):
    assert letters.encode_batch(["ac", "", "B"]) == [[0, 7], [], [2]]
    found = letters.encode_flat(["ac", "", "B"])
    assert found.ids.tolist() == [0, 7, 2] and found.lengths.tolist() == [2, 0, 1]
    assert letters.ids_to_pieces([7, 4]) == ["c", "<p>"]


def test_what_is_no_vocabulary_is_named(tmp_path, vocab_file):
    with pytest.raises(UserError, match=f"^{tmp_path} is a folder; give the vocabulary file"):
        Letters(tmp_path)
    with pytest.raises(UserError, match="none.txt does not exist. Train one with python -m"):
        Letters(tmp_path / "none.txt")
    vocab_file.write_text("a\n<u>\n<p>\n<s>\n")
    with pytest.raises(UserError, match="letters.txt has no piece <c>, <m>. Train a vocabulary"):
        Letters(vocab_file)
