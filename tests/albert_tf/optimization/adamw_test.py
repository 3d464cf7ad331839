"""AdamW: decay inside the update, no trust ratio, no correction unless asked for."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.optimization import AdamW


@pytest.fixture(autouse=True)
def plain(fast_choice):
    fast_choice("off")


def moved(name: str, **settings) -> np.ndarray:
    variable = tf.Variable([3.0, -4.0], name=name)
    optimizer = AdamW(0.1, global_clipnorm=None, **settings)
    optimizer.apply_gradients([(tf.constant([0.5, 2.0]), variable)])
    return variable.numpy() - [3.0, -4.0]


def test_the_first_update():
    """From moments of zero: m = 0.1 g, v = 0.001 g^2."""
    step = 0.1 / np.sqrt(0.001)
    decay = 0.01 * np.array([3.0, -4.0])
    np.testing.assert_allclose(moved("kernel"), -0.1 * (step + decay), rtol=1e-4)
    np.testing.assert_allclose(moved("bias"), [-0.1 * step] * 2, rtol=1e-4)
    corrected = moved("kernel", bias_correction=True, weight_decay_rate=0.5)
    np.testing.assert_allclose(corrected, -0.1 * (1 + 50 * decay), rtol=1e-4)


def test_nothing_is_adapted():
    assert not AdamW(0.1).adapts("encoder/pooler/kernel")
    assert (AdamW(0.1).name, AdamW(0.1, name="mine").name) == ("AdamW", "mine")
    assert type(AdamW.from_config(AdamW(0.1).get_config())) is AdamW
