"""Factors by depth, and where depth has no meaning."""

import pytest

from albert_tf.errors import UserError
from albert_tf.models import AlbertClassifier
from albert_tf.optimization import AdamW, layerwise_factors


def factors_by_variable(config):
    optimizer = AdamW(0.1, learning_rate_factors=layerwise_factors(config, 0.5))
    names = [variable.name for variable in AlbertClassifier(config, 2).trainable_variables]
    return {name: optimizer.rate_factor(name) for name in names}


def test_nothing_shared(tiny_config):
    factors = factors_by_variable(
        tiny_config.replace(num_hidden_layers=12, parameter_sharing="none")
    )
    transformer = "encoder/transformer/group_{}_inner_0_{}"
    for layer in range(12):
        for part in ("attention/query/kernel:0", "ffn/output/bias:0"):
            assert factors[transformer.format(layer, part)] == 0.5 ** (11 - layer)
    assert factors["encoder/embeddings/word_embeddings:0"] == 0.5**12
    assert factors["encoder/pooler/kernel:0"] == factors["classification/logits/kernel:0"] == 1.0


def test_what_is_shared_counts_as_its_highest_layer(tiny_config):
    groups = factors_by_variable(tiny_config.replace(num_hidden_layers=6, num_hidden_groups=3))
    kernel = "encoder/transformer/group_{}_inner_0_ffn/output/kernel:0"
    assert [groups[kernel.format(group)] for group in range(3)] == [0.5**4, 0.5**2, 1.0]
    shared_attention = factors_by_variable(tiny_config.replace(parameter_sharing="attention"))
    assert shared_attention["encoder/transformer/group_0_inner_0_attention/key/bias:0"] == 1.0
    assert shared_attention[kernel.format(0)] == 0.5


def test_all_shared_is_refused_with_a_reason(tiny_config):
    with pytest.raises(UserError, match="all 2 layers share one set of weights.*Leave it out"):
        layerwise_factors(tiny_config, 0.9)
    with pytest.raises(UserError, match=r"1.5 does not lie in \(0, 1\]"):
        layerwise_factors(tiny_config.replace(parameter_sharing="none"), 1.5)
