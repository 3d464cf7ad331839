"""Presets have the published sizes and dropout rates."""

import pytest

from albert_tf import PRESETS, get_preset
from albert_tf.errors import UserError

SIZES = {
    "albert-base": (128, 768, 12, 12, 3072),
    "albert-large": (128, 1024, 24, 16, 4096),
    "albert-xlarge": (128, 2048, 24, 16, 8192),
    "albert-xxlarge": (128, 4096, 12, 64, 16384),
    "bert-base": (768, 768, 12, 12, 3072),
    "bert-large": (1024, 1024, 24, 16, 4096),
    "bert-xlarge": (2048, 2048, 24, 32, 8192),
    "bert-tiny": (128, 128, 2, 2, 512),
    "bert-mini": (256, 256, 4, 4, 1024),
    "bert-small": (512, 512, 4, 8, 2048),
    "bert-medium": (512, 512, 8, 8, 2048),
    "electra-small": (128, 256, 12, 4, 1024),
    "albert-small-en": (128, 512, 4, 8, 2048),
    "albert-small": (128, 256, 4, 4, 1024),
    "albert-tiny": (128, 128, 3, 4, 512),
}
ENDINGS = ("-v1", "-v2", "-zh", "-uncased", "-discriminator")


def rate(name: str) -> float:
    """The dropout rate: of ALBERT, only version 1 has any, but for its largest model."""
    if name.startswith("albert"):
        return 0.1 if name.endswith("-v1") and "xxlarge" not in name else 0.0
    return 0.1


@pytest.mark.parametrize("name", PRESETS)
def test_sizes_and_dropout(name):
    config = PRESETS[name]
    base = next((name.removesuffix(each) for each in ENDINGS if name.endswith(each)), name)
    found = (
        *(config.embedding_size, config.hidden_size, config.num_hidden_layers),
        *(config.num_attention_heads, config.intermediate_size),
    )
    assert found == SIZES[base]
    assert config.num_hidden_groups == config.inner_group_num == 1
    assert config.parameter_sharing == ("all" if name.startswith("albert") else "none")
    assert config.hidden_dropout_prob == config.attention_probs_dropout_prob == rate(name)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UserError, match="'albert-huge' is unknown. Known presets: albert-base-v1"):
        get_preset("albert-huge")


def test_vocabularies():
    found = {name: config.vocab_size for name, config in PRESETS.items()}
    chinese = {name for name, size in found.items() if size == 21128}
    assert chinese == {name for name in PRESETS if name.endswith("-zh")} and len(chinese) == 4
    assert {name for name, size in found.items() if size == 8000} == {"albert-small", "albert-tiny"}
    assert {name for name, size in found.items() if size == 12000} == {"albert-small-en"}
    google = {"electra-small-discriminator", *(name for name in found if name.endswith("-uncased"))}
    assert {name for name, size in found.items() if size == 30522} == google and len(google) == 6
    assert set(found.values()) == {30000, 30522, 21128, 12000, 8000} and len(found) == 24
