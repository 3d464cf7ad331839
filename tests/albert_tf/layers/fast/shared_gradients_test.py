"""Copies of shared weights, and the order in which their gradients are added."""

from __future__ import annotations

import pytest
import tensorflow as tf

from albert_tf.layers.fast import shared_gradients
from albert_tf.layers.fast.shared_gradients import share


@pytest.mark.parametrize(
    ("uses", "at_once", "sums"),
    [
        (1, 3, []),
        (2, 3, [2]),
        (3, 3, [3]),
        (4, 3, [4]),  # Three and the sum behind them, which is the fourth's alone.
        (7, 3, [4, 4]),
        (5, 1, [2, 2, 2, 2]),
        (12, 3, [3, 4, 4, 4]),
    ],
)
def test_so_many_gradients_are_added_at_a_time(monkeypatch, uses, at_once, sums):
    """The last copies' first; of each sum its result is one of the next."""
    added, add = [], shared_gradients._sum
    monkeypatch.setattr(
        shared_gradients, "_sum", lambda *tensors: added.append(len(tensors)) or add(*tensors)
    )
    weight = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(weight)
        copies = share(weight, uses, at_once)
        result = tf.add_n([10.0**i * copy for i, copy in enumerate(copies)])
    assert float(tape.gradient(result, weight)) == pytest.approx(float("1" * uses))
    assert added == sums


def test_sums_are_taken_in_float32():
    tensors = [tf.constant([value], tf.bfloat16) for value in (256.0, *[1.0] * 8)]
    found = shared_gradients._sum(*tensors)
    assert found.dtype == tf.bfloat16 and float(found[0]) == 264.0


def test_a_sum_is_a_call_or_a_kernel(fast_choice):
    """So that TensorFlow does not merge a chain of them."""

    @tf.function
    def total(x):
        return shared_gradients._sum(shared_gradients._sum(x, x), x)

    def functions():
        graph = total.get_concrete_function(tf.TensorSpec([2])).graph.as_graph_def()
        assert sum("PartitionedCall" in node.op for node in graph.node) == 2
        return [function.attr for function in graph.library.function]

    assert all(attributes["_noinline"].b for attributes in functions())
    fast_choice("on")
    total = tf.function(total.python_function)
    assert all(attributes["_XlaMustCompile"].b for attributes in functions())
