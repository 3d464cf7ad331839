"""Functions that a graph holds apart: when they are compiled, and how often they are traced."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.layers.fast.compiled import compiled, once_in_graph
from albert_tf.machine import fast_switch


@pytest.fixture
def form(monkeypatch):
    """Sets what the form is, without a trial of XLA."""

    def choose(is_on: bool, suits_cpu: bool = False) -> None:
        monkeypatch.setattr(fast_switch, "is_on", lambda: is_on)
        monkeypatch.setattr(fast_switch, "suits_cpu", lambda: suits_cpu)

    return choose


def counted():
    """A function that adds one, and the list of how it was run: eagerly or traced."""
    runs = []

    def add_one(x):
        """The next number."""
        runs.append("eager" if tf.executing_eagerly() else "traced")
        return x + 1

    return add_one, runs


def library_of(function, *arguments):
    graph = tf.function(function).get_concrete_function(*arguments).graph.as_graph_def()
    calls = [node for node in graph.node if "PartitionedCall" in node.op]
    return calls, graph.library.function


def test_compiled_only_where_the_fast_form_is_on(form):
    function, runs = counted()
    kernel = compiled(function)
    form(False)
    assert float(kernel(tf.constant(1.0))) == 2.0 and runs == ["eager"]
    form(True)
    assert float(kernel(tf.constant(1.0))) == 2.0 and runs == ["eager", "traced"]
    kernel(tf.constant(5.0))
    assert len(runs) == 2
    assert kernel.__name__ == "add_one" and kernel.__doc__ == "The next number."


def test_a_kernel_is_marked_for_xla(form):
    kernel = compiled(counted()[0])
    form(True)
    calls, library = library_of(kernel, tf.TensorSpec([2]))
    assert len(calls) == 1 and library[0].attr["_XlaMustCompile"].b
    form(False)
    assert library_of(kernel, tf.TensorSpec([2])) == ([], [])


def test_eagerly_it_runs_as_it_is(form):
    form(False)
    function, runs = counted()
    call = once_in_graph(function)
    np.testing.assert_array_equal(call(tf.constant([1.0])), [2.0])
    assert runs == ["eager"] and call.__name__ == "add_one"


@pytest.mark.parametrize(("settings", "inline"), [({}, True), ({"inline": False}, False)])
def test_a_graph_calls_it_and_holds_it_once(form, settings, inline):
    form(False)
    function, runs = counted()
    call = once_in_graph(function, **settings)
    calls, library = library_of(lambda x: call(call(call(x))), tf.TensorSpec([2]))
    assert runs == ["traced"] and len(calls) == 3 and len(library) == 1
    assert library[0].attr["_noinline"].b is not inline
    np.testing.assert_array_equal(tf.function(call)(tf.constant([1.0, 2.0])), [2.0, 3.0])


def test_each_form_is_traced_apart(form):
    function, runs = counted()
    call = once_in_graph(function)
    for number, settings in enumerate([(False, False), (True, False), (True, True)], start=1):
        form(*settings)
        for _ in range(2):
            library_of(call, tf.TensorSpec([2]))
        assert len(runs) == number
