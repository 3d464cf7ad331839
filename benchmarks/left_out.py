"""Functions that replace a piece of albert_tf/layers/fast by its plain form, for benchmarks."""

from __future__ import annotations

import functools
from collections.abc import Callable

from albert_tf.layers.blocks import Operations
from albert_tf.layers.fast import attention, operations
from albert_tf.machine import fast_switch


def _plain(owner: type, *names: str) -> Callable[[], None]:
    """A function that replaces methods of a class by their plain form."""

    def replace() -> None:
        for name in names:
            setattr(owner, name, Operations.__dict__[name])

    return replace


# Functions that replace each piece; the worker calls them before it builds the model.
_INFERENCE, _TRAINING = operations.InferenceOperations, operations.TrainingOperations
PIECES: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "streams": _plain(_INFERENCE, "in_parts"),
    "weights read once": _plain(_INFERENCE, "weights_of_each"),
    "shared gradients": functools.partial(
        setattr, operations, "share", lambda tensors, uses, at_once: [tensors] * uses
    ),
    "shared gradients, three at once": functools.partial(setattr, _TRAINING, "uses_at_once", 1),
    "layer_norm": _plain(_TRAINING, "layer_norm"),
    "gelu": _plain(_TRAINING, "activation"),
    "attend": _plain(_TRAINING, "attend"),
    "attend, softmax": functools.partial(
        setattr, attention, "_softmax", attention._softmax.__wrapped__
    ),
    "all of them": functools.partial(fast_switch.choose, "off"),
}
