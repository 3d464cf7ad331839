"""Hugging Face's config.json: what comes over from it, what goes back, what is refused."""

import pytest

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.huggingface_config import as_groups, from_huggingface, to_huggingface


@pytest.mark.parametrize(
    "theirs, ours", [("gelu_new", "gelu"), ("gelu", "gelu_erf"), ("relu", "relu")]
)
def test_activations_keep_their_function_not_their_name(tiny_config, theirs, ours):
    values = {**to_huggingface(tiny_config), "hidden_act": theirs, "bos_token_id": 7}
    assert from_huggingface(values) == tiny_config.replace(hidden_act=ours)


def test_missing_keys_are_hugging_faces_defaults():
    config = from_huggingface({"model_type": "albert"})
    assert (config.vocab_size, config.hidden_act) == (30000, "gelu")
    assert (config.num_hidden_groups, config.inner_group_num) == (1, 1)


def test_unshared_layers_are_groups():
    config = AlbertConfig(
        vocab_size=50, hidden_size=8, num_attention_heads=2, num_hidden_layers=3,
        intermediate_size=16, parameter_sharing="none",
    )  # fmt: skip
    values = to_huggingface(config)
    assert values["num_hidden_groups"] == 3 and "parameter_sharing" not in values
    assert from_huggingface(values) == as_groups(config)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"model_type": "bert"}, "model_type is 'bert', not 'albert'"),
        ({"position_embedding_type": "relative_key"}, "'relative_key' is not supported"),
        ({"hidden_act": "swish"}, "c.json: hidden_act 'swish' is not one of gelu_pytorch_tanh, "),
        ({"num_hidden_layers": 22, "num_hidden_groups": 22}, "layer 15 is in another group"),
    ],
)
def test_what_is_not_computed_here_is_refused(tiny_config, change, message):
    with pytest.raises(UserError, match=message):
        from_huggingface({**to_huggingface(tiny_config), **change}, "c.json")


def test_nothing_shared_said_with_groups(tiny_config):
    unshared = tiny_config.replace(parameter_sharing="none")
    assert as_groups(unshared) == tiny_config.replace(num_hidden_groups=2)
    assert as_groups(tiny_config) is tiny_config
    with pytest.raises(UserError, match="with 22 layers the reference's formula does not give"):
        as_groups(unshared.replace(num_hidden_layers=22))
