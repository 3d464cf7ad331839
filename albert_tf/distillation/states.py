"""The states of an encoder's layers in a forward pass that somebody else makes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf.layers.blocks import ReadyBlock
from albert_tf.layers.fast.operations import operations_for
from albert_tf.models import AlbertEncoder


class States(NamedTuple):
    """The states of L layers, inner ones counted.

    Attributes:
      hidden: L + 1 tensors [B, S, H], unspecified at padding: the embeddings as the first layer
        gets them, then the output of each layer.
      attended: of each layer, queries (scaled by 1 / sqrt(D)), keys and values [B, N, S, D].
    """

    hidden: list[tf.Tensor]
    attended: list[tuple[tf.Tensor, tf.Tensor, tf.Tensor]]


class _SeenBlock(ReadyBlock):
    """A ReadyBlock that keeps its input where that is the first layer's."""

    def __call__(self, x: tf.Tensor, forward: Any, *positions: Any, seed: Any) -> tf.Tensor:
        hidden = self.operations.hidden  # type: ignore[attr-defined]
        if not hidden:
            hidden.append(forward.layout.to_padded(x))
        return super().__call__(x, forward, *positions, seed=seed)


@contextlib.contextmanager
def watched(encoder: AlbertEncoder) -> Iterator[States]:
    """A context in which the states of the encoder's one pass are kept, which recomputes nothing
    and has all positions in its last layer, too.
    """
    # By the door of `output_attentions`: the operations of one pass are an argument of `_layers`.
    # They are those of a step with a gradient, fast ones included, which take a batch as a whole.
    # Only this object's method is replaced, so the model's own files know nothing of it.
    states, layers = States([], []), encoder._layers

    def watch(inputs, positions, training, seed, operations=None) -> list[tf.Tensor]:
        operations = operations_for(with_gradient=True)
        operations.ready_block, operations.hidden = _SeenBlock, states.hidden
        attend = operations.attend

        def keep(query, key, value, *others) -> tf.Tensor:
            states.attended.append((query, key, value))
            return attend(query, key, value, *others)

        operations.attend = keep
        outputs = layers(inputs, None, training, seed, operations)
        states.hidden.extend(outputs)
        return outputs if positions is None else [tf.gather(outputs[-1], positions, batch_dims=1)]

    encoder.__dict__["_layers"] = watch
    try:
        yield states
    finally:
        del encoder.__dict__["_layers"]
