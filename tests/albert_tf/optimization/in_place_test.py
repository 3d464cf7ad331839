"""Compiled updates: equal to the plain ones, written over the old values."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.machine import fast_switch
from albert_tf.optimization import LAMB, in_place
from albert_tf.optimization.updates import AdamSettings, adam_update

RNG = np.random.default_rng(0)
WEIGHTS, GRADIENT, M, V = RNG.normal(size=[4, 3, 5]).astype(np.float32)
V = np.abs(V)


@pytest.mark.parametrize("bias_correction", [False, True])
@pytest.mark.parametrize("adapts", [True, False])
def test_updates_equal_the_plain_ones(adapts, bias_correction):
    settings = AdamSettings(0.8, 0.9, 1e-3, 0.1, bias_correction)
    variables = [tf.Variable(each) for each in (WEIGHTS, M, V)]
    weights, m, v = variables
    step, rate = tf.constant(3), tf.constant(0.1)
    in_place.update(weights, tf.constant(GRADIENT), m, v, step, rate, settings, adapts)
    values = map(tf.constant, (WEIGHTS, GRADIENT, M, V))
    expected = adam_update(*values, step, rate, settings, adapts)
    for found, value in zip(variables, expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)


def marks(**settings) -> list[bool]:
    """For each function in the graph of an update, whether XLA compiles it."""
    optimizer, variable = LAMB(0.1, **settings), tf.Variable(WEIGHTS, name="kernel")
    optimizer.build([variable])
    function = tf.function(lambda: optimizer.apply_gradients([(tf.constant(GRADIENT), variable)]))
    library = function.get_concrete_function().graph.as_graph_def().library.function
    return [each.attr["_XlaMustCompile"].b for each in library]


def test_an_update_is_two_compiled_parts_with_the_norms_between_them(monkeypatch):
    monkeypatch.setattr(fast_switch, "is_on", lambda: True)
    assert sum(marks()) == 2
    monkeypatch.setattr(fast_switch, "is_on", lambda: False)
    assert sum(marks()) == 0
