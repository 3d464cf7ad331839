"""Two decorators for functions of tensors: `compiled` by XLA, and called `once_in_graph`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from albert_tf.machine import fast_switch


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function of tensors with XLA if the fast form is on."""
    # Meant for chains of small operations between matrix products, such as a normalization:
    # TensorFlow reads and writes memory once per operation, XLA once for the whole chain. The
    # products stay outside: a whole step compiled by XLA is slower than one with oneDNN's products.
    # Each new shape is compiled again, which takes a tenth of a second. So this is for training
    # only, where shapes are few: the number of rows is a multiple of `Operations.row_multiple`.
    by_xla = tf.function(function, jit_compile=True, autograph=False)

    @functools.wraps(function)
    def kernel(*arguments: Any) -> Any:
        return by_xla(*arguments) if fast_switch.is_on() else function(*arguments)

    return kernel


def once_in_graph(function: Callable[..., Any], inline: bool = True) -> Callable[..., Any]:
    """Makes graphs call a function of tensors, which must not read variables, instead of repeating
    its operations; eagerly it runs unchanged. With inline=False a call starts only when all its
    arguments are computed, and its memory is free again before the next call.
    """
    # For operations that a deep model repeats in every layer: traced for each, they take seconds
    # and a hundred megabytes of graph. By default TensorFlow inlines the calls before it runs the
    # graph, so only tracing changes.
    attributes = None if inline else {"_noinline": True}

    # A graph traced with the fast form on contains compiled parts: after fast_switch has changed, a
    # new one has to be traced. The arguments of `in_graph` are only the key of the cache.
    @functools.cache
    def in_graph(*unused_form: bool) -> Callable[..., Any]:
        return tf.function(function, autograph=False, experimental_attributes=attributes)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        if tf.executing_eagerly():
            return function(*arguments)
        return in_graph(fast_switch.is_on(), fast_switch.suits_cpu())(*arguments)

    return call
