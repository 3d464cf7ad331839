"""Streams: parts of a batch computed in parallel; results are equal up to rounding."""

# Between matrix products a layer has operations that are too short for all cores, or bound by
# memory. With one stream, the other cores wait for them; with two independent streams, they compute
# the other stream's matrix products meanwhile. Without this, a forward pass takes 1.08 to 1.09
# times as long, and 0.87 times the memory. Training has no streams: they saved no time there, and
# took memory (docs/benchmarks/notes.md).
#
# Nothing is scheduled here: the graph contains the layers once per stream, no operation of one
# needs a result of the other, and TensorFlow runs whatever is ready.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from albert_tf.machine import fast_switch
from albert_tf.machine.targets import shapes_must_be_static

_TOKENS_PER_STREAM = 512  # Products of fewer rows are slower.
_MAX_STREAMS = 2


def in_streams(function: Callable[..., Any], batch: Sequence[tf.Tensor | None]) -> Any:
    """`Operations.in_parts`: function(*batch), with a part of the batch in each stream."""
    sizes = stream_sizes(batch[0])
    if sizes is None:
        return function(*batch)
    parts = [[None] * len(sizes) if each is None else tf.split(each, sizes) for each in batch]
    results = [function(*part) for part in zip(*parts)]
    return tf.nest.map_structure(lambda *of_parts: tf.concat(of_parts, axis=0), *results)


def stream_sizes(sequences: tf.Tensor) -> list[int] | None:
    """Numbers of sequences in the streams of a batch, given any of its tensors [B, S]:
    [9, 128] -> 5, 4. None: the batch is one stream.
    """
    # Several streams are used only on CPUs (accelerators overlap operations by themselves), in
    # graphs (eager operations wait for each other), and if B and S are static.
    batch, length = sequences.shape
    if batch is None or length is None:
        return None
    if tf.executing_eagerly() or shapes_must_be_static() or not fast_switch.suits_cpu():
        return None
    streams = min(batch, batch * length // _TOKENS_PER_STREAM, _MAX_STREAMS)
    if streams < 2:
        return None
    return [batch // streams + (index < batch % streams) for index in range(streams)]
