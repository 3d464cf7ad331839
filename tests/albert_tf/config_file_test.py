"""Files of an architecture: both kinds are read, and broken ones said to be."""

import json

import pytest

from albert_tf.config import AlbertConfig
from albert_tf.config_file import read_config
from albert_tf.errors import UserError
from albert_tf.huggingface_config import to_huggingface


@pytest.mark.parametrize("content", [AlbertConfig.to_dict, to_huggingface])
def test_both_kinds_of_files(tiny_config, tmp_path, content):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(content(tiny_config)))
    assert read_config(str(path)) == tiny_config == AlbertConfig.from_json_file(str(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ("[1]", "holds a JSON list, not an object"),
        ('{"hidden_size": 8}', "the key 'vocab_size' is missing"),
        (
            '{"vocab_size": 8, "hiden_size": 8}',
            "unknown key 'hiden_size'. Did you mean 'hidden_size'?",
        ),
        ('{"vocab_size": -1}', "albert_config.json: vocab_size must be a positive integer, not -1"),
    ],
)
def test_broken_files(tmp_path, content, message):
    path = tmp_path / "albert_config.json"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        read_config(str(path))


def test_a_missing_file():
    with pytest.raises(UserError, match="nowhere.json does not exist"):
        read_config("nowhere.json")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(UserError, match="is a folder. Pass the albert_config.json in it"):
        read_config(str(tmp_path))
