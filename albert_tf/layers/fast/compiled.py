"""Two decorators for functions of tensors: `compiled` by XLA, and called `once_in_graph`.

`compiled` is for a chain of small operations between matrix products, such as a normalization.
TensorFlow reads and writes memory once for each operation, XLA once for the whole chain.
`once_in_graph` is for what a deep model does again in every layer. It keeps graphs small, and can
delay a computation until all its arguments are there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from albert_tf.machine import fast_switch


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function of tensors with XLA where the fast form is on.

    It is compiled again for every new shape, a tenth of a second each time. So it is for training
    only, where the number of rows is a multiple of `Operations.row_multiple`: few shapes.
    """
    by_xla = tf.function(function, jit_compile=True, autograph=False)

    @functools.wraps(function)
    def kernel(*arguments: Any) -> Any:
        return by_xla(*arguments) if fast_switch.is_on() else function(*arguments)

    return kernel


def once_in_graph(function: Callable[..., Any], inline: bool = True) -> Callable[..., Any]:
    """A function of tensors that a graph calls instead of repeating its operations.

    Without it a deep model is traced for seconds and its graph fills a hundred megabytes. Eagerly
    the function runs as it is.

    Args:
      function: takes and returns tensors, and reads no variables.
      inline: whether TensorFlow puts the operations in the places of the calls before it runs the
        graph. If not, a call begins when all its arguments are there, and its memory is free again
        before the next call.
    """
    attributes = None if inline else {"_noinline": True}

    # A graph traced with the fast form on holds compiled parts: after fast_switch has changed, a
    # new one has to be traced. The arguments of `in_graph` are the key of the cache, nothing else.
    @functools.cache
    def in_graph(*unused_form: bool) -> Callable[..., Any]:
        return tf.function(function, autograph=False, experimental_attributes=attributes)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        if tf.executing_eagerly():
            return function(*arguments)
        return in_graph(fast_switch.is_on(), fast_switch.suits_cpu())(*arguments)

    return call
