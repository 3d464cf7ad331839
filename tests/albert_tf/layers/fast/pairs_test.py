"""Each fast function equals its plain twin: values and gradients, in every precision and form."""

from __future__ import annotations

import functools
import pkgutil
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.layers import blocks, fast, operations
from albert_tf.layers.fast import attention, gelu, layer_norm, shared_gradients, streams

pytestmark = pytest.mark.fast_layers

WIDTH = 24
TOLERANCE = {tf.float32: 2e-6, tf.bfloat16: 0.04}
DEVICES = ["CPU:0", *(device.name for device in tf.config.list_logical_devices("GPU"))]


class Pair(NamedTuple):
    """A fast function, its plain twin, and shapes of what they are called with.

    Attributes:
      float32: the places of arguments that have this precision always.
    """

    fast: Callable[..., tf.Tensor]
    plain: Callable[..., tf.Tensor]
    shapes: Sequence[Sequence[int]]
    float32: Sequence[int] = ()


def with_epsilon(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """With a number so large that a gradient without it would be another."""
    return functools.partial(function, epsilon=0.05)


def masked(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """Attention of two sequences in which one key each is padding."""

    def attend(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
        bias = np.zeros([2, 1, 1, key.shape[2]], np.float32)
        bias[0, ..., -1] = bias[1, ..., 2] = -10000
        return function(query, key, value, tf.constant(bias))

    return attend


def in_graph(in_parts: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """A function of a batch, by parts as they are in a graph; traced again in each mode."""
    function = functools.partial(in_parts, lambda part: part * tf.tanh(part))
    return lambda x: tf.function(lambda x: function([x]))(x)


def used(uses: Sequence[tf.Tensor]) -> tf.Tensor:
    """Something of each use of a weight."""
    return tf.add_n([tf.tanh((number + 1) * use) for number, use in enumerate(uses)])


NORM = with_epsilon(layer_norm.layer_norm), with_epsilon(operations.layer_norm)
ATTENTION = masked(attention.attend), masked(operations.attend)
PAIRS = {
    "gelu": Pair(gelu.gelu, operations.gelu, [(40, WIDTH)]),
    "layer_norm": Pair(*NORM, [(7, WIDTH), (WIDTH,), (WIDTH,)], (1, 2)),
    "layer_norm of 3 axes": Pair(*NORM, [(2, 3, WIDTH), (WIDTH,), (WIDTH,)], (1, 2)),
    "layer_norm of an odd width": Pair(*NORM, [(7, 5), (5,), (5,)], (1, 2)),
    "attend": Pair(*ATTENTION, [(2, 3, 5, 4)] * 3),
    "attend of a few queries": Pair(*ATTENTION, [(2, 3, 2, 4), (2, 3, 5, 4), (2, 3, 5, 4)]),
    "attend over many keys": Pair(*ATTENTION, [(2, 3, 16, 4)] * 3),
    "in_streams": Pair(
        in_graph(streams.in_streams), in_graph(blocks.Operations().in_parts), [(9, 128)]
    ),
    "share": Pair(
        lambda weight: used(shared_gradients.share(weight, uses=5, at_once=2)),
        lambda weight: used([weight] * 5),
        [(3, WIDTH)],
    ),
}


@pytest.fixture(autouse=True, params=["on", "off"])
def mode(request, fast_choice):
    """Compiled, and as ordinary operations."""
    fast_choice(request.param)


def values_and_gradients(function: Callable[..., tf.Tensor], inputs: Sequence[tf.Tensor]):
    """The result, and its gradients for a fixed upstream, in float32."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = function(*inputs)
    upstream = tf.random.stateless_normal(result.shape, [99, 1])
    gradients = tape.gradient(result, inputs, tf.cast(upstream, result.dtype))
    tensors = map(tf.convert_to_tensor, (result, *gradients))  # Gradients of gathers are sparse.
    return [tf.cast(each, tf.float32).numpy() for each in tensors]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_pair(pair, dtype, device):
    """The fast one in some precision against the plain one in float32, relative to the largest."""
    inputs = [
        tf.random.stateless_normal(shape, [number, 1]) for number, shape in enumerate(pair.shapes)
    ]
    ours = [
        each if number in pair.float32 else tf.cast(each, dtype)
        for number, each in enumerate(inputs)
    ]
    with tf.device(device):
        found = values_and_gradients(pair.fast, ours)
        expected = values_and_gradients(pair.plain, [tf.cast(each, tf.float32) for each in ours])
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert np.abs(one - other).max() <= TOLERANCE[dtype] * max(1.0, np.abs(other).max())


MODULES = (attention, gelu, layer_norm, shared_gradients, streams)
# The choice of operations, two decorators, and what is a whole stack's:
# test_recomputation_changes_nothing.
OTHERS = {"operations", "compiled", "recompute"}
DECIDING = {"stream_sizes"}  # It computes nothing.


def test_every_fast_function_has_a_row_and_names_its_twin():
    tested = {name.split(" of ")[0].split(" over ")[0] for name in PAIRS}
    found = set()
    for module in MODULES:
        for name, function in vars(module).items():
            is_own = getattr(function, "__module__", None) == module.__name__
            if is_own and not name.startswith("_") and name not in DECIDING:
                found.add(name)
                first_line = function.__doc__.splitlines()[0]
                is_formula = hasattr(operations, name)
                twin = rf"operations\.{name}" if is_formula else r"(Operations|tf)\.\w+"
                assert re.search(f"`{twin}`", first_line), name
    assert found == tested
    names = {module.__name__.rpartition(".")[2] for module in MODULES}
    assert names | OTHERS == {module.name for module in pkgutil.iter_modules(fast.__path__)}
