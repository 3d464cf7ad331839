"""What LAMB's trust ratio scales, and learning rates by depth."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.models import AlbertClassifier
from albert_tf.optimization import LAMB, AdamW, layerwise_factors

NAMES = {"encoder/pooler/kernel": True, "encoder/pooler/bias": False}
NORMS = {"a/LayerNorm/gamma": False, "a/layer_norm/beta": False, "a/embeddings": True}


def test_what_is_adapted_by_default_is_what_decays():
    optimizer = LAMB(0.1)
    for name, expected in {**NAMES, **NORMS}.items():
        assert optimizer.adapts(name) is optimizer.is_decayed(name) is expected
    assert LAMB(0.1, exclude_from_weight_decay=["kernel"]).adapts("a/kernel") is False


def test_adaptation_may_leave_out_others():
    optimizer = LAMB(0.1, exclude_from_layer_adaptation=["^encoder/", "x$"])
    found = [optimizer.adapts(name) for name in ("encoder/bias", "head/bias", "a/x", "x/a")]
    assert found == [False, True, False, True]
    assert not optimizer.is_decayed("head/bias")
    assert LAMB(0.1, exclude_from_layer_adaptation=[]).adapts("bias")
    settings = optimizer.get_config()
    assert settings["exclude_from_layer_adaptation"] == ["^encoder/", "x$"]
    assert LAMB.from_config(settings).get_config() == settings
    assert (optimizer.name, LAMB(0.1, name="other").name) == ("LAMB", "other")


def test_the_first_update_of_adamw():
    """From moments of zero: m = 0.1 g, v = 0.001 g^2; what does not decay moves by these alone."""
    start = np.array([3.0, -4.0])
    for name, decay in (("kernel", 0.01), ("bias", 0.0)):
        variable = tf.Variable(start, name=name, dtype=tf.float32)
        AdamW(0.1, global_clipnorm=None).apply_gradients([(tf.constant([0.5, 2.0]), variable)])
        expected = start - 0.1 * (0.1 / np.sqrt(0.001) + decay * start)
        np.testing.assert_allclose(variable, expected, rtol=1e-4)


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
