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


def _plain_softmax() -> None:
    attention._softmax = attention._softmax.__wrapped__


def _gradients_not_shared() -> None:
    operations.share = lambda tensors, uses, at_once: [tensors] * uses


def _one_gradient_at_a_time() -> None:
    operations.TrainingOperations.uses_at_once = 1


# Functions that replace each piece; the worker calls them before it builds the model.
_INFERENCE, _TRAINING = operations.InferenceOperations, operations.TrainingOperations
PIECES: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "streams": _plain(_INFERENCE, "in_parts"),
    "weights read once": _plain(_INFERENCE, "weights_of_each"),
    "shared gradients": _gradients_not_shared,
    "shared gradients, three at once": _one_gradient_at_a_time,
    "layer_norm": _plain(_TRAINING, "layer_norm"),
    "gelu": _plain(_TRAINING, "activation"),
    "attend": _plain(_TRAINING, "attend"),
    "attend, softmax": _plain_softmax,
    "all of them": functools.partial(fast_switch.choose, "off"),
}
