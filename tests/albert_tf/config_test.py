"""Configurations: published files are read, impossible values fail where they are made."""

import json

import pytest

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError

PUBLISHED_BASE_V2 = {
    "attention_probs_dropout_prob": 0, "hidden_act": "gelu", "hidden_dropout_prob": 0,
    "embedding_size": 128, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
    "max_position_embeddings": 512, "num_attention_heads": 12, "num_hidden_layers": 12,
    "num_hidden_groups": 1, "net_structure_type": 0, "gap_size": 0, "num_memory_blocks": 0,
    "inner_group_num": 1, "down_scale_factor": 1, "type_vocab_size": 2, "vocab_size": 30000,
}  # fmt: skip


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
        ({"parameter_sharing": "none", "num_hidden_groups": 2}, "requires parameter_sharing='all'"),
        ({"num_hidden_groups": 13}, "num_hidden_groups 13 is more than num_hidden_layers 12"),
        ({"vocab_size": True}, "vocab_size must be a positive integer, not True"),
        ({"recompute": 1}, "recompute must be true or false, not 1"),
        ({"hidden_act": 3}, "hidden_act must be a string, not 3"),
        ({"layer_norm_eps": 0.0}, "layer_norm_eps must be a positive number, not 0.0"),
        ({"initializer_range": "a"}, "initializer_range must be a positive number, not 'a'"),
        ({"hidden_dropout_prob": -0.1}, "hidden_dropout_prob must be a probability"),
        ({"hidden_dropout_prob": False}, "hidden_dropout_prob must be a probability"),
    ],
)
def test_impossible_values(changes, message):
    config = AlbertConfig.from_dict(PUBLISHED_BASE_V2)
    with pytest.raises(UserError, match=message):
        config.replace(**changes)
    assert config.replace(hidden_dropout_prob=0, layer_norm_eps=1) != config


def test_groups_follow_the_references_floating_point_formula(tiny_config):
    config = tiny_config.replace(num_hidden_layers=22, num_hidden_groups=22)
    assert config.group_of_layer(15, 22) == 14  # int(15 / 22 * 22): not 15.
    unshared = tiny_config.replace(num_hidden_layers=22, parameter_sharing="none")
    assert [unshared.group_of_layer(layer, 22) for layer in range(22)] == list(range(22))


def test_defaults_are_the_references():
    config = AlbertConfig(vocab_size=5)
    assert config.to_dict() == {
        "vocab_size": 5, "embedding_size": 128, "hidden_size": 4096, "num_hidden_layers": 12,
        "num_attention_heads": 64, "intermediate_size": 16384, "num_hidden_groups": 1,
        "inner_group_num": 1, "parameter_sharing": "all", "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
        "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02,
        "layer_norm_eps": 1e-12, "recompute": False, "always_project_embeddings": False,
        "tie_word_embeddings": True,
    }  # fmt: skip
    assert AlbertConfig.field_names() == list(config.to_dict())


@pytest.mark.parametrize(
    ("sharing", "attention", "ffn"),
    [("all", 1, 1), ("attention", 1, 12), ("ffn", 12, 1), ("none", 12, 12)],
)
def test_groups(sharing, attention, ffn):
    config = AlbertConfig(vocab_size=5, parameter_sharing=sharing)
    assert (config.num_attention_groups, config.num_ffn_groups) == (attention, ffn)
    groups = AlbertConfig(vocab_size=5, num_hidden_groups=3)
    assert (groups.num_attention_groups, groups.num_ffn_groups) == (3, 3)
    layers = [groups.group_of_layer(layer, 3) for layer in range(12)]
    assert layers == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]


def test_whether_there_is_a_projection(tiny_config):
    equal = tiny_config.replace(embedding_size=16)
    assert tiny_config.has_embedding_projection and not equal.has_embedding_projection
    assert equal.replace(always_project_embeddings=True).has_embedding_projection


def test_linear_is_null_in_the_reference():
    assert AlbertConfig.from_dict({"vocab_size": 5, "hidden_act": None}).hidden_act == "linear"
    assert AlbertConfig.from_dict({"vocab_size": 5}).hidden_act == "gelu"
    with pytest.raises(UserError, match="unknown key 'xyz'. Known keys: vocab_size, embedding_s"):
        AlbertConfig.from_dict({"vocab_size": 5, "xyz": 1})
