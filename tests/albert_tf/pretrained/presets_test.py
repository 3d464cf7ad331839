"""Presets have the published sizes and dropout rates."""

import pytest

from albert_tf import PRESETS, get_preset
from albert_tf.errors import UserError


def test_dropout_of_the_published_versions():
    rates = {name: config.hidden_dropout_prob for name, config in PRESETS.items()}
    assert [rates[f"albert-{size}-v1"] for size in ("base", "large", "xlarge", "xxlarge")] == [
        0.1,
        0.1,
        0.1,
        0.0,
    ]
    assert [rates[f"albert-{size}-v2"] for size in ("base", "large", "xlarge", "xxlarge")] == [
        0.0
    ] * 4


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        UserError, match="preset 'albert-huge' is unknown. Known presets: albert-base-v1"
    ):
        get_preset("albert-huge")


def sizes(config) -> tuple[int, ...]:
    """E, H, L, N and F."""
    return (
        config.embedding_size,
        config.hidden_size,
        config.num_hidden_layers,
        config.num_attention_heads,
        config.intermediate_size,
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["albert-base-v1", "albert-base-v2", "albert-base-zh"], (128, 768, 12, 12, 3072)),
        (["albert-large-v1", "albert-large-v2", "albert-large-zh"], (128, 1024, 24, 16, 4096)),
        (["albert-xlarge-v1", "albert-xlarge-v2", "albert-xlarge-zh"], (128, 2048, 24, 16, 8192)),
        (
            ["albert-xxlarge-v1", "albert-xxlarge-v2", "albert-xxlarge-zh"],
            (128, 4096, 12, 64, 16384),
        ),
        (["bert-base"], (768, 768, 12, 12, 3072)),
        (["bert-large"], (1024, 1024, 24, 16, 4096)),
        (["bert-xlarge"], (2048, 2048, 24, 32, 8192)),
        (["bert-base-uncased"], (768, 768, 12, 12, 3072)),
        (["bert-tiny-uncased"], (128, 128, 2, 2, 512)),
        (["bert-mini-uncased"], (256, 256, 4, 4, 1024)),
        (["bert-small-uncased"], (512, 512, 4, 8, 2048)),
        (["bert-medium-uncased"], (512, 512, 8, 8, 2048)),
        (["electra-small-discriminator"], (128, 256, 12, 4, 1024)),
        (["albert-small-en"], (128, 512, 4, 8, 2048)),
        (["albert-small"], (128, 256, 4, 4, 1024)),
        (["albert-tiny"], (128, 128, 3, 4, 512)),
    ],
)
def test_sizes(names, expected):
    for name in names:
        assert sizes(PRESETS[name]) == expected, name
        assert PRESETS[name].num_hidden_groups == PRESETS[name].inner_group_num == 1
        assert PRESETS[name].parameter_sharing == ("all" if name.startswith("albert") else "none")


def test_vocabularies():
    found = {name: config.vocab_size for name, config in PRESETS.items()}
    chinese = {name for name, size in found.items() if size == 21128}
    assert chinese == {name for name in PRESETS if name.endswith("-zh")} and len(chinese) == 4
    assert {name for name, size in found.items() if size == 8000} == {"albert-small", "albert-tiny"}
    assert {name for name, size in found.items() if size == 12000} == {"albert-small-en"}
    google = {"electra-small-discriminator", *(name for name in found if name.endswith("-uncased"))}
    assert {name for name, size in found.items() if size == 30522} == google and len(google) == 6
    assert set(found.values()) == {30000, 30522, 21128, 12000, 8000} and len(found) == 24


def test_both_dropouts_are_equal():
    for name, config in PRESETS.items():
        rate = config.hidden_dropout_prob
        assert config.attention_probs_dropout_prob == rate, name
        assert name.startswith("albert") or rate == 0.1
        assert not (rate and name.endswith(("-zh", "-small", "-tiny")))
