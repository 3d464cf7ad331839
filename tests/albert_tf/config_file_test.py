"""Files of an architecture: both kinds are read, and broken ones said to be."""

import json
import math

import pytest

from albert_tf.checkpoints.huggingface_config import to_huggingface
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError


@pytest.mark.parametrize("content", [AlbertConfig.to_dict, to_huggingface])
def test_both_kinds_of_files(tiny_config, tmp_path, content):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(content(tiny_config)))
    assert AlbertConfig.from_json_file(str(path)) == tiny_config


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
        ({"num_hidden_layers": 10**9}, "num_hidden_layers must be at most 10,000, not 1000000000"),
        ({"num_hidden_layers": 1e30}, "num_hidden_layers must be a positive integer, not 1e.30"),
        ({"vocab_size": 2**62}, "vocab_size must be at most 2,147,483,647, not 46116860184273"),
        ({"layer_norm_eps": math.inf}, "layer_norm_eps must be a positive number, not inf"),
        (b'{"model_type": "albert", "x": "\xff"}', "config.json is not UTF-8"),
        (b'{"x":' * 100_000, "config.json is nested too deeply"),
        (b"[" + b"9" * 5000 + b"]", "config.json is not valid JSON: Exceeds the limit"),
        (100 << 20, "config.json has 104,857,600 bytes"),
    ],
)
def test_broken_files(tiny_config, tmp_path, content, message):
    path = tmp_path / "albert_config.json"
    if isinstance(content, dict):
        path.write_text(json.dumps({**to_huggingface(tiny_config), **content}))
    elif isinstance(content, str):
        path.write_text(content)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        with path.open("wb") as file:
            file.truncate(content)
    with pytest.raises(UserError, match=message):
        AlbertConfig.from_json_file(str(path))


def test_no_file(tmp_path):
    with pytest.raises(UserError, match="nowhere.json does not exist"):
        AlbertConfig.from_json_file("nowhere.json")
    with pytest.raises(UserError, match="is a folder. Pass the albert_config.json in it"):
        AlbertConfig.from_json_file(str(tmp_path))


@pytest.mark.parametrize("program", ["albert_tf.convert", "albert_tf.describe"])
def test_a_broken_file_ends_in_a_sentence(result_of, tmp_path, program):
    (tmp_path / "config.json").write_bytes(b'{"x":' * 100_000)
    if program == "albert_tf.convert":
        flags = (f"--input={tmp_path}", f"--output={tmp_path}/out", "--format=native")
    else:
        flags = (f"--config_file={tmp_path}/config.json",)
    result = result_of(program, *flags)
    assert result.returncode == 2 and "Traceback" not in result.stderr
    assert "is nested too deeply" in result.stderr and result.stderr.count("\n") == 1
