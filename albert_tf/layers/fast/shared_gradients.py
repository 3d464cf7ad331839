"""Gradients of weights that several layers share, added up as they come.

TensorFlow keeps the gradient of every use until it has all of them, which for 12 layers is 12 times
the weights. Here they are added a few at a time, in float32 whatever the precision.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from albert_tf import fast_switch
from albert_tf.layers.fast.compiled import compiled, once_in_graph


def share(tensors: Any, uses: int, at_once: int) -> list[Any]:
    """Copies of a structure of tensors for several uses, whose gradients are added in float32.

    Args:
      uses: how many copies.
      at_once: so many gradients are added at a time, those of the last copies first, that few have
        to be kept.
    """

    def copies(tensor: tf.Tensor, number: int) -> list[tf.Tensor]:
        @tf.custom_gradient
        def copy(tensor: tf.Tensor):
            return [tensor] * number, lambda *gradients: _sum(*gradients)

        return copy(tensor) if number > 1 else [tensor]

    def shared(tensor: tf.Tensor) -> list[tf.Tensor]:
        ready: list[tf.Tensor] = []
        while uses - len(ready) > at_once:
            *some, tensor = copies(tensor, at_once + 1)
            ready += some
        return ready + copies(tensor, uses - len(ready))

    flat = [shared(tensor) for tensor in tf.nest.flatten(tensors)]
    return [tf.nest.pack_sequence_as(tensors, use) for use in zip(*flat, strict=True)]


def _sum(*tensors: tf.Tensor) -> tf.Tensor:
    """In a kernel or a call, because TensorFlow would merge a chain of sums into one of all layers,
    for which it keeps them all.
    """
    return (_sum_in_kernel if fast_switch.is_on() else _sum_in_call)(*tensors)


def _sum32(*tensors: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.add_n([tf.cast(each, tf.float32) for each in tensors]), tensors[0].dtype)


_sum_in_kernel, _sum_in_call = compiled(_sum32), once_in_graph(_sum32, inline=False)
