"""Which operations a forward pass gets, and what the fast ones do differently."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.layers import operations as plain
from albert_tf.layers.blocks import Operations
from albert_tf.layers.fast import attention, gelu, layer_norm
from albert_tf.layers.fast.operations import (
    InferenceOperations,
    PlainInferenceOperations,
    PlainRecomputingOperations,
    RecomputingOperations,
    TrainingOperations,
    operations_for,
)
from albert_tf.machine import fast_switch


@pytest.mark.parametrize(
    ("is_on", "with_gradient", "recompute", "expected"),
    [
        (False, False, False, PlainInferenceOperations),
        (False, True, False, Operations),
        (False, False, True, PlainInferenceOperations),
        (False, True, True, PlainRecomputingOperations),
        (True, False, False, InferenceOperations),
        (True, False, True, InferenceOperations),
        (True, True, False, TrainingOperations),
        (True, True, True, RecomputingOperations),
    ],
)
def test_the_choice(monkeypatch, is_on, with_gradient, recompute, expected):
    monkeypatch.setattr(fast_switch, "is_on", lambda: is_on)
    assert type(operations_for(with_gradient, recompute)) is expected
    if not recompute:
        assert type(operations_for(with_gradient)) is expected


FORMULAS = ("attend", "dense", "activation", "row_multiple")


def test_what_is_inferred_without_the_fast_form_is_plain():
    for name in (*FORMULAS, "in_parts"):
        assert getattr(PlainInferenceOperations, name) is getattr(Operations, name), name


def test_what_is_recomputed_without_the_fast_form_is_plain():
    for name in FORMULAS:
        assert getattr(PlainRecomputingOperations, name) is getattr(Operations, name), name
    x, norm = tf.constant([[1.0, 3.0]]), SimpleNamespace(gamma=1.0, beta=2.0, epsilon=0.0)
    found = PlainRecomputingOperations().layer_norm(x, norm)
    np.testing.assert_array_equal(found, Operations().layer_norm(x, norm))


def test_what_training_does_otherwise():
    assert TrainingOperations.dense is Operations.dense  # Its bias has an exact gradient.
    assert (TrainingOperations.uses_at_once, RecomputingOperations.uses_at_once) == (3, 1)
    assert PlainRecomputingOperations.uses_at_once == 1


class Block:
    """Stands for a block of layers."""

    def __init__(self, name: str, value: float) -> None:
        self.name, self.reads, self._value = name, 0, tf.Variable([value])

    def read_weights(self) -> tf.Tensor:
        self.reads += 1
        return tf.convert_to_tensor(self._value)


@pytest.mark.parametrize(
    ("kind", "streams_of_a_pass"),
    [
        (InferenceOperations, 2),
        (PlainInferenceOperations, 1),
        (TrainingOperations, 1),
        (PlainRecomputingOperations, 1),
    ],
)
def test_weights_are_read_once_in_a_forward_pass(kind, streams_of_a_pass):
    one, other, operations = Block("one", 1.0), Block("other", 2.0), kind()
    for _ in range(streams_of_a_pass):
        weights = operations.weights_of_each([one, other, one, one])
        assert [float(each[0]) for each in weights] == [1.0, 2.0, 1.0, 1.0]
    assert (one.reads, other.reads) == (1, 1)


def noted(monkeypatch, module, name: str) -> list[tuple]:
    """The arguments of each call of a function, which returns its first."""
    calls = []
    monkeypatch.setattr(module, name, lambda *given: calls.append(given) or given[0])
    return calls


def test_training_takes_the_fast_functions(monkeypatch):
    operations, x = TrainingOperations(), tf.ones([2, 3])
    calls = noted(monkeypatch, layer_norm, "layer_norm")
    norm = SimpleNamespace(gamma=1, beta=2, epsilon=3)
    assert operations.layer_norm(x, norm) is x and calls == [(x, 1, 2, 3)]
    assert operations.activation("gelu") is gelu.gelu
    for name in ("gelu_erf", "relu", "tanh", "linear"):
        assert operations.activation(name) is plain.ACTIVATIONS[name]


def test_attention_with_dropout_is_the_plain_one(monkeypatch):
    operations, tensors = TrainingOperations(), [tf.ones([1, 1, 2, 2])] * 3
    bias = tf.zeros([1, 1, 1, 2])
    calls = noted(monkeypatch, attention, "attend")
    operations.attend(*tensors, bias)
    assert len(calls) == 1 and calls[0][3] is bias
    found = operations.attend(*tensors, bias, lambda probs: 3 * probs)
    np.testing.assert_allclose(found, np.full([1, 1, 2, 2], 3.0))
    assert len(calls) == 1
    assert InferenceOperations().attend is plain.attend
