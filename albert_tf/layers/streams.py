"""Parts of a batch that go through the layers side by side.

Between matrix products a layer has operations that are too short for all cores, or bound by memory.
In one stream of work the other cores wait for them; of two independent streams the other one
multiplies meanwhile. Values and gradients are those of the whole batch, up to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from albert_tf.layers import fast
from albert_tf.layers.packing import PackedLayout, PaddedLayout, shapes_must_be_static

# Products of fewer rows are slower; figures for more streams: docs/benchmarks.md.
_TOKENS_PER_STREAM = 512
_MAX_STREAMS = 2


class Stream(NamedTuple):
    """Sequences of a batch on their way through the layers.

    Attributes:
      rows: float [T, H] in `layout`.
      input_mask: int32 [B, S], 1 for real tokens.
      layout: of the rows.
      positions: int32 [B, P]: the last layer is computed at these positions only; None: at all.
      seed: int32 [2], from which all dropout masks follow; None draws fresh ones.
    """

    rows: tf.Tensor
    input_mask: tf.Tensor
    layout: PaddedLayout | PackedLayout
    positions: tf.Tensor | None = None
    seed: tf.Tensor | None = None


def stream_sizes(input_mask: tf.Tensor) -> list[int] | None:
    """How many sequences each stream of a batch gets; None: the batch is one stream.

    Only in the fast form and on a CPU, since accelerators overlap operations by themselves, in a
    graph, since eager operations wait for each other, and if the size is static.

    Args:
      input_mask: int32 [B, S], 1 for real tokens.
    """
    batch, sequence = input_mask.shape
    if batch is None or sequence is None:
        return None
    if tf.executing_eagerly() or shapes_must_be_static():
        return None
    if tf.config.list_logical_devices("GPU"):
        return None
    streams = min(batch, batch * sequence // _TOKENS_PER_STREAM, _MAX_STREAMS)
    if streams < 2 or not fast.is_on():
        return None
    return [batch // streams + (index < batch % streams) for index in range(streams)]
