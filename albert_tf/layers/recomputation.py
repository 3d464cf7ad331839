"""A stack of layers that keeps only what goes into each, and computes the rest again for the
gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

# (rows, a structure of weights) -> rows.
Layer = Callable[[tf.Tensor, Any], tf.Tensor]

_SUMMED_AT_ONCE = 4


def recomputed_layers(
    layers: Sequence[Layer], rows: tf.Tensor, weights: Sequence[Any]
) -> list[tf.Tensor]:
    """Applies layers one after the other; their gradient takes the memory of one layer.

    tf.recompute_grad for each layer would keep the gradients of shared weights of all layers until
    they are added up at the end; here they are added up on the way.

    Args:
      layers: L functions that compute the same when they are called again.
      rows: float [T, H].
      weights: structures of tensors, one for each layer; shared ones are the same objects.

    Returns:
      What comes out of each layer.
    """
    flat = [tf.nest.flatten(of_layer) for of_layer in weights]
    unique = list({id(tensor): tensor for tensors in flat for tensor in tensors}.values())
    place_of = {id(tensor): place for place, tensor in enumerate(unique)}
    used = [[place_of[id(tensor)] for tensor in tensors] for tensors in flat]

    def apply(step: int, rows: tf.Tensor, tensors: Sequence[tf.Tensor]) -> tf.Tensor:
        return layers[step](rows, tf.nest.pack_sequence_as(weights[step], tensors))

    @tf.custom_gradient
    def run(rows: tf.Tensor, *tensors: tf.Tensor):
        inputs, outputs = [], []
        for step, places in enumerate(used):
            inputs.append(rows)
            rows = apply(step, rows, [tensors[place] for place in places])
            outputs.append(rows)

        def gradient(*upstreams: tf.Tensor, variables: Sequence[tf.Variable] = ()):
            sums = _Sums()
            upstream = None
            for step in reversed(range(len(layers))):
                upstream = upstreams[step] if upstream is None else upstream + upstreams[step]
                upstream, *found = _layer_gradient(
                    functools.partial(apply, step),
                    inputs[step],
                    [tensors[place] for place in used[step]],
                    variables,
                    upstream,
                )
                sums.add([*used[step], *range(len(tensors), len(tensors) + len(variables))], found)
            totals = sums.totals()
            return (upstream, *totals[: len(tensors)]), totals[len(tensors) :]

        return tuple(outputs), gradient

    return list(run(rows, *unique))


class _Sums:
    """Running sums by place; some terms are kept and added up at once, which is faster."""

    def __init__(self) -> None:
        self._terms: dict[int, list[tf.Tensor]] = {}

    def add(self, places: Sequence[int], values: Sequence[tf.Tensor]) -> None:
        """Adds values to the sums at places."""
        for place, value in zip(places, values):
            terms = self._terms.setdefault(place, [])
            terms.append(value)
            if len(terms) == _SUMMED_AT_ONCE:
                terms[:] = [tf.add_n(terms)]

    def totals(self) -> list[tf.Tensor]:
        """The sums in the order of places."""
        return [tf.add_n(self._terms[place]) for place in sorted(self._terms)]


def _layer_gradient(
    layer: Layer,
    rows: tf.Tensor,
    weights: Sequence[tf.Tensor],
    variables: Sequence[tf.Variable],
    upstream: tf.Tensor,
) -> list[tf.Tensor]:
    """Gradients of one layer with respect to rows, weights and variables."""
    with tf.control_dependencies([upstream]):  # Not before the layers above are done.
        rows = tf.identity(rows)
    with tf.GradientTape() as tape:
        tape.watch([rows, *weights])
        output = layer(rows, weights)
    return tape.gradient(
        output,
        [rows, *weights, *variables],
        upstream,
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )
