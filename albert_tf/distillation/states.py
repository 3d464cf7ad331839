"""The states of an encoder's layers in a forward pass that somebody else makes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from albert_tf.layers.blocks import Operations, ReadyBlock
from albert_tf.layers.fast.operations import TrainingOperations
from albert_tf.machine import fast_switch
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
        hidden = self.operations.states.hidden  # type: ignore[attr-defined]
        if not hidden:
            hidden.append(forward.layout.to_padded(x))
        return super().__call__(x, forward, *positions, seed=seed)


class _Watching(Operations):
    """Keeps the states of one pass, which has all positions in its last layer, too."""

    ready_block = _SeenBlock

    def __init__(self) -> None:
        self.states = States([], [])

    def in_parts(self, function: Callable[..., Any], batch: Sequence[tf.Tensor | None]) -> Any:
        *inputs, positions = batch
        outputs = super().in_parts(function, [*inputs, None])
        self.states.hidden.extend(outputs)
        return outputs if positions is None else [tf.gather(outputs[-1], positions, batch_dims=1)]

    def attend(self, query, key, value, *others) -> tf.Tensor:
        self.states.attended.append((query, key, value))
        return super().attend(query, key, value, *others)


class _WatchingTraining(_Watching, TrainingOperations):
    """The same by the fast forms."""


@contextlib.contextmanager
def watched(encoder: AlbertEncoder) -> Iterator[States]:
    """A context in which the states of the encoder's one pass are kept, which recomputes nothing.
    It computes as a step with a gradient does, whose fast forms take a batch as a whole.
    """
    encoder.operations = _WatchingTraining() if fast_switch.is_on() else _Watching()
    try:
        yield encoder.operations.states
    finally:
        encoder.operations = None
