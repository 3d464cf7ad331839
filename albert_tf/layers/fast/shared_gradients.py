"""Gradients of weights that several layers share, added up as they arrive."""

# TensorFlow keeps the gradient of every use until it has all of them, which for 12 layers is 12
# times the weights. Here they are added a few at a time, in float32 whatever the precision.
#
# The trick is a chain of copies, since the gradient of a copy operation is a sum. For 7 layers, 3
# at a time: w -> u1 u2 u3 w', w' -> u4 u5 u6 u7. The backward pass reaches u7, u6, u5 and u4 first.
# Their gradients' sum is that of w', and they are freed before the gradient of u3 is made.

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf.layers.fast.compiled import compiled, once_in_graph
from albert_tf.machine import fast_switch


def share(tensors: Any, uses: int, at_once: int) -> list[Any]:
    """`Operations.weights_of_each` for one block: a structure of tensors, copied `uses` times, in
    the order of use. Gradients are added `at_once` at a time, from the last copies to the first.
    """
    # With a small `at_once` few gradients have to be kept, but each sum is a pass over memory.

    def copies(tensor: tf.Tensor, number: int) -> list[tf.Tensor]:
        @tf.custom_gradient
        def copy(tensor: tf.Tensor):
            return [tensor] * number, lambda *gradients: _sum(*gradients)

        return copy(tensor) if number > 1 else [tensor]

    def shared(tensor: tf.Tensor) -> list[tf.Tensor]:
        ready: list[tf.Tensor] = []
        while uses - len(ready) > at_once:
            *some, tensor = copies(tensor, at_once + 1)  # The last copy is copied again.
            ready += some
        return ready + copies(tensor, uses - len(ready))

    flat = [shared(tensor) for tensor in tf.nest.flatten(tensors)]
    return [tf.nest.pack_sequence_as(tensors, use) for use in zip(*flat, strict=True)]


def _sum(*tensors: tf.Tensor) -> tf.Tensor:
    """The sum of tensors in float32, returned in their precision."""
    # In its own function, because TensorFlow would merge a chain of sums into one over all layers,
    # and keep all gradients for it.
    return (_sum_in_kernel if fast_switch.is_on() else _sum_in_call)(*tensors)


def _sum32(*tensors: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.add_n([tf.cast(each, tf.float32) for each in tensors]), tensors[0].dtype)


_sum_in_kernel, _sum_in_call = compiled(_sum32), once_in_graph(_sum32, inline=False)
