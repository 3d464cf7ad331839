"""LAMB: which variables its trust ratio scales."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.optimization import LAMB

NAMES = {"encoder/pooler/kernel": True, "encoder/pooler/bias": False}
NORMS = {"a/LayerNorm/gamma": False, "a/layer_norm/beta": False, "a/embeddings": True}


@pytest.fixture(autouse=True)
def plain(fast_choice):
    fast_choice("off")


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


def test_each_variable_moves_by_its_own_ratio():
    """By rate times its norm, whatever its gradient's size."""
    optimizer = LAMB(0.1, weight_decay_rate=0.0, global_clipnorm=None)
    starts = [np.float32([3.0, 4.0]), np.float32([60.0, 80.0])]
    variables = [tf.Variable(start, name=f"kernel_{i}") for i, start in enumerate(starts)]
    optimizer.apply_gradients(zip([tf.constant([5.0, 0.0]), tf.constant([0.0, 1e-3])], variables))
    moves = [np.linalg.norm(v.numpy() - start) for v, start in zip(variables, starts)]
    np.testing.assert_allclose(moves, [0.5, 10.0], rtol=1e-4)


def test_what_is_not_adapted_moves_as_under_adamw():
    optimizer = LAMB(0.1, global_clipnorm=None, bias_correction=True)
    bias = tf.Variable([30.0, 40.0], name="bias")
    optimizer.apply_gradients([(tf.constant([5.0, -2.0]), bias)])
    np.testing.assert_allclose(bias, [29.9, 40.1], rtol=1e-5)
