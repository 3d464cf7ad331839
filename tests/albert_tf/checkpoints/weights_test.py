"""Strict assignment: every variable is found, every weight is used, or nothing changes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints.weights import Allowed, assign
from albert_tf.errors import UserError


class Stored:
    """Weights in memory."""

    path = "somewhere"

    def __init__(self, **weights: np.ndarray) -> None:
        self._weights = {name.replace("_", "."): np.float32(each) for name, each in weights.items()}
        self.shapes = {name: list(each.shape) for name, each in self._weights.items()}
        self.read_names: list[str] = []

    def read(self, name: str) -> np.ndarray:
        self.read_names.append(name)
        return self._weights[name]


@pytest.fixture
def variables() -> list[tf.Variable]:
    shapes = {"head/kernel": [2, 3], "head/bias": [3]}
    return [tf.Variable(tf.zeros(shape), name=name) for name, shape in shapes.items()]


PLACES = {"head/kernel": ("head.weight", True), "head/bias": ("head.bias", False)}
KERNEL = np.arange(6.0).reshape(3, 2)  # Stored as the transpose.


def test_values_are_assigned_and_transposed(variables):
    stored = Stored(head_weight=KERNEL, head_bias=[7, 8, 9])
    assert assign(variables, stored, PLACES.__getitem__) == []
    np.testing.assert_array_equal(variables[0], KERNEL.T)
    np.testing.assert_array_equal(variables[1], [7, 8, 9])


def test_all_that_is_wrong_is_listed_and_nothing_is_assigned(variables):
    stored = Stored(head_weight=KERNEL.T, b=[1], a=[1, 2])
    with pytest.raises(UserError) as error:
        assign(variables, stored, PLACES.__getitem__)
    assert str(error.value).splitlines()[:5] == [
        "checkpoint somewhere does not fit the model:",
        "  misshapen: head.weight has shape [2, 3], the model needs [3, 2]",
        "  missing: head.bias, shape [3]",
        "  unused: a",
        "  unused: b",
    ]
    assert "configuration" in str(error.value).splitlines()[5]
    assert not stored.read_names
    np.testing.assert_array_equal(variables[0], np.zeros([2, 3]))


def test_nothing_is_assigned_where_a_weight_cannot_be_read(variables):
    stored = Stored(head_weight=KERNEL, head_bias=[7, 8, 9])
    stored._weights.pop("head.bias")
    with pytest.raises(KeyError):
        assign(variables, stored, PLACES.__getitem__)
    np.testing.assert_array_equal(variables[0], np.zeros([2, 3]))


def test_what_may_be_missing_or_unused(variables):
    variables[1] = tf.Variable(tf.zeros([3]), name="pooler/bias")
    places = {**PLACES, "pooler/bias": ("pooler.bias", False)}
    stored = Stored(head_weight=KERNEL, old_bias=[1])
    kept = assign(variables, stored, places.__getitem__, Allowed(["^x", "bias$"], [r"^old\."]))
    assert kept == ["pooler/bias"] and stored.read_names == ["head.weight"]
    np.testing.assert_array_equal(variables[0], KERNEL.T)
    with pytest.raises(UserError, match="missing: pooler.bias"):
        assign(variables, stored, places.__getitem__, Allowed(["^bias"], [r"^old\."]))
    with pytest.raises(UserError, match="unused: old.bias"):
        assign(variables, stored, places.__getitem__, Allowed(["bias$"], ["^bias"]))


def test_half_a_layer_may_not_be_missing(variables):
    with pytest.raises(UserError, match="missing: head.bias"):
        assign(variables, Stored(head_weight=KERNEL), PLACES.__getitem__, Allowed(["bias$"]))


def test_a_wrong_shape_is_wrong_even_where_the_weight_may_be_missing(variables):
    stored = Stored(head_weight=KERNEL, head_bias=[7, 8])
    with pytest.raises(UserError, match="misshapen: head.bias has shape \\[2\\]"):
        assign(variables, stored, PLACES.__getitem__, Allowed([""]))
