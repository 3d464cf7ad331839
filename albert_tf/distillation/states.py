"""Recording of an encoder's layer states in a forward pass that other code runs."""

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
    """The states of L layers, counting inner layers.

    Attributes:
      hidden: L + 1 tensors [B, S, H], unspecified at padding: the embeddings as the first layer
        gets them, then the output of each layer.
      attended: for each layer, queries (scaled by 1 / sqrt(D)), keys and values [B, N, S, D].
    """

    hidden: list[tf.Tensor]
    attended: list[tuple[tf.Tensor, tf.Tensor, tf.Tensor]]


class _RecordingBlock(ReadyBlock):
    """A ReadyBlock that records its input if it is the first layer's."""

    def __call__(self, x: tf.Tensor, forward: Any, *positions: Any, seed: Any) -> tf.Tensor:
        hidden = self.operations.states.hidden  # type: ignore[attr-defined]
        if not hidden:
            hidden.append(forward.layout.to_padded(x))
        return super().__call__(x, forward, *positions, seed=seed)


class _Recording(Operations):
    """Records the states of one pass; the last layer, too, computes all positions."""

    ready_block = _RecordingBlock

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


class _RecordingTraining(_Recording, TrainingOperations):
    """`_Recording` with the fast forms of training."""


@contextlib.contextmanager
def record_states(encoder: AlbertEncoder) -> Iterator[States]:
    """A context that records the states of the encoder's single forward pass. The pass recomputes
    nothing and uses the operations of a training step, whose fast forms take a whole batch.
    """
    encoder.operations = _RecordingTraining() if fast_switch.is_on() else _Recording()
    try:
        yield encoder.operations.states
    finally:
        encoder.operations = None
