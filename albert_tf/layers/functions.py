"""Functions of a graph: operations that it holds once, however often they are called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf


def once_in_graph(function: Callable[..., Any], inline: bool = True) -> Callable[..., Any]:
    """A function of tensors that a graph calls instead of repeating its operations.

    Without it a deep model is traced for seconds and its graph fills a hundred megabytes. Eagerly
    the function runs as it is.

    Args:
      inline: whether TensorFlow puts the operations in the places of the calls before it runs the
        graph. If not, a call waits for all its arguments, and what it needs inside is free before
        the next.
    """
    attributes = None if inline else {"_noinline": True}
    in_graph = tf.function(function, autograph=False, experimental_attributes=attributes)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return function(*arguments) if tf.executing_eagerly() else in_graph(*arguments)

    return call
