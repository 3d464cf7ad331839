"""The right tokenizer with the right settings for each vocabulary."""

from pathlib import Path

import pytest
import tensorflow as tf

from data_pipeline.errors import UserError
from data_pipeline.tokenizers.base import TokenizerSettings
from data_pipeline.tokenizers.graph import graph_tokenizer
from data_pipeline.tokenizers.loading import load_tokenizer

WORDPIECE = Path(__file__).parents[2] / "goldens" / "wordpiece" / "vocab.txt"


def test_settings_travel_beside_the_vocabulary(tmp_path, vocab_file):
    copy = tmp_path / "spiece.model"
    copy.write_bytes(Path(vocab_file).read_bytes())
    assert load_tokenizer(str(copy)).settings == TokenizerSettings(True, "google", True, False)
    earlier = tmp_path / "tokenizer_settings.json"
    earlier.write_text('{"lower": false, "rules": "plain"}')
    cased = load_tokenizer(str(copy))
    assert cased.settings == TokenizerSettings(False, "plain", True, False)
    earlier.write_bytes(cased.settings_json())
    assert load_tokenizer(str(copy)).settings == cased.settings
    assert load_tokenizer(str(copy), lower=True).settings.lower is True


def test_a_hugging_face_folder_has_a_file_of_a_similar_name(tmp_path, vocab_file):
    copy = tmp_path / "spiece.model"
    copy.write_bytes(Path(vocab_file).read_bytes())
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0", "truncation": null}')
    assert load_tokenizer(str(copy)).settings == TokenizerSettings(True, "google", True, False)


def test_the_name_tells_the_kind(tmp_path, vocab_file):
    for path, text in ((vocab_file, "in 2010, here"), (str(WORDPIECE), "我们在2010年")):
        python_face = load_tokenizer(path)
        ids = graph_tokenizer(python_face).tokenize(tf.constant([text])).to_list()
        assert ids == [python_face.encode(text)] and python_face.unk_id not in ids[0]
    with pytest.raises(UserError, match=r"'plain' are for SentencePiece.*ending in .txt"):
        load_tokenizer(str(WORDPIECE), rules="plain")


def test_a_vocabulary_with_capitals_is_a_cased_one(tmp_path):
    """Archives of google-research's BERT say it in their names only. Hugging Face's default is to
    lower the case, whatever the vocabulary.
    """
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for name, pieces, lower in (("cased", ["The", "cat", "##S"], False), ("un", ["the"], True)):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "vocab.txt"
        path.write_text("\n".join([*special, *pieces]))
        assert load_tokenizer(str(path)).settings.lower is lower
        assert load_tokenizer(str(path), lower=True).settings.lower
        (tmp_path / name / "config.json").write_text("{}")
        assert load_tokenizer(str(path)).settings.lower
