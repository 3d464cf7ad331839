"""Configurations: published files are read, impossible values fail where they are made."""

import json

import pytest

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError

PUBLISHED_BASE_V2 = {
    "attention_probs_dropout_prob": 0,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0,
    "embedding_size": 128,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "num_hidden_groups": 1,
    "net_structure_type": 0,
    "gap_size": 0,
    "num_memory_blocks": 0,
    "inner_group_num": 1,
    "down_scale_factor": 1,
    "type_vocab_size": 2,
    "vocab_size": 30000,
}


def test_a_published_file_is_read_and_written(tmp_path):
    path = tmp_path / "albert_config.json"
    path.write_text(json.dumps(PUBLISHED_BASE_V2))
    config = AlbertConfig.from_json_file(str(path))
    assert (config.hidden_size, config.head_size, config.embedding_size) == (768, 64, 128)
    config.to_json_file(str(path))
    assert AlbertConfig.from_json_file(str(path)) == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"hidden_size": 100, "num_attention_heads": 3},
            "hidden_size 100 is not a multiple of num_attention_heads 3",
        ),
        ({"num_hidden_layers": 0}, "num_hidden_layers must be a positive integer, not 0"),
        ({"num_hidden_layers": 2.5}, "num_hidden_layers must be a positive integer, not 2.5"),
        (
            {"hidden_dropout_prob": 1.0},
            r"hidden_dropout_prob must be a probability in \[0, 1\), not 1.0",
        ),
        ({"hidden_act": "swish"}, "hidden_act 'swish' is not one of"),
        ({"parameter_sharing": "some"}, "parameter_sharing 'some' is not one of"),
        (
            {"parameter_sharing": "none", "num_hidden_groups": 2},
            "only with parameter_sharing='all'",
        ),
        ({"num_hidden_groups": 13}, "num_hidden_groups 13 is more than num_hidden_layers 12"),
    ],
)
def test_impossible_values(changes, message):
    with pytest.raises(UserError, match=message):
        AlbertConfig(**{**AlbertConfig.from_dict(PUBLISHED_BASE_V2).to_dict(), **changes})


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
        AlbertConfig.from_json_file(str(path))


def test_a_missing_file():
    with pytest.raises(UserError, match="nowhere.json does not exist"):
        AlbertConfig.from_json_file("nowhere.json")


def test_groups_follow_the_references_floating_point_formula(tiny_config):
    config = tiny_config.replace(num_hidden_layers=22, num_hidden_groups=22)
    assert config.group_of_layer(15, 22) == 14  # int(15 / 22 * 22): not 15.
    unshared = tiny_config.replace(num_hidden_layers=22, parameter_sharing="none")
    assert [unshared.group_of_layer(layer, 22) for layer in range(22)] == list(range(22))
