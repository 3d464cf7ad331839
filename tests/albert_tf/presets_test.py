"""Presets have the published sizes and dropout rates."""

import pytest

from albert_tf import PRESETS, AlbertEncoder, AlbertPretrainer, get_preset
from albert_tf.errors import UserError


@pytest.mark.parametrize(
    ("name", "encoder", "pretrainer"),
    [("albert-base-v2", 11_683_584, 11_813_810), ("albert-large-v1", 17_683_968, 17_847_474)],
)
def test_parameter_counts(name, encoder, pretrainer):
    assert AlbertEncoder(get_preset(name)).count_params() == encoder
    assert AlbertPretrainer(get_preset(name)).count_params() == pretrainer


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
