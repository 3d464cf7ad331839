"""Recomputation computes again what a gradient needs, and nothing more."""

import collections
from collections.abc import Iterable

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertConfig, AlbertEncoder
from albert_tf.layers.fast.recompute import _after
from tests.conformance_cases import BASE

pytestmark = pytest.mark.fast_layers

CONFIG = BASE.replace(vocab_size=50, max_position_embeddings=16)
LAYERS = CONFIG.num_hidden_layers


def make_encoder(recompute: bool, packed: bool) -> AlbertEncoder:
    return AlbertEncoder(CONFIG.replace(recompute=recompute), packed=packed)


def make_gradients(encoder: AlbertEncoder, **options):
    """The gradients of all variables for ids and a mask, int32 [B, S]."""

    @tf.function(**options)
    def gradients(word_ids: tf.Tensor, mask: tf.Tensor) -> list[tf.Tensor]:
        inputs = {"input_word_ids": word_ids, "input_type_ids": mask, "input_mask": mask}
        with tf.GradientTape() as tape:
            outputs = encoder(inputs, training=True, seed=tf.constant([1, 2]))
            loss = tf.reduce_sum(tf.sin(outputs["sequence_output"]))
        found = tape.gradient(loss, encoder.trainable_variables)
        return [tf.convert_to_tensor(each) for each in found if each is not None]

    return gradients


def make_inputs() -> tuple[tf.Tensor, tf.Tensor]:
    ids = tf.random.stateless_uniform([2, 16], [3, 4], 1, CONFIG.vocab_size, tf.int32)
    return ids, tf.sequence_mask([16, 11], 16, tf.int32)


def assert_same(ours, plain):
    """Keys' bias has no gradient but rounding: hence the absolute tolerance."""
    assert len(ours) == len(plain) > 20
    for one, other in zip(ours, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6 * max(1.0, np.abs(other).max()))


def training_step(config: AlbertConfig, packed: bool) -> tf.Graph:
    gradients = make_gradients(AlbertEncoder(config, packed=packed))
    ids = tf.TensorSpec([2, 16], tf.int32)
    return gradients.get_concrete_function(ids, ids).graph


def executed(graph: tf.Graph) -> collections.Counter:
    """How many operations of each kind a graph's outputs need, those of its functions included."""
    definition = graph.as_graph_def()
    functions = {function.signature.name: function for function in definition.library.function}

    def count(nodes: Iterable, results: Iterable[str]) -> collections.Counter:
        by_name = {node.name: node for node in nodes}
        counts, needed, waiting = collections.Counter(), set(), list(results)
        while waiting:
            name = waiting.pop().removeprefix("^").split(":")[0]
            if name in needed or name not in by_name:  # Arguments of a function are no nodes.
                continue
            needed.add(name)
            node = by_name[name]
            counts[node.op] += 1
            waiting += node.input
            if "f" in node.attr:
                function = functions[node.attr["f"].func.name]
                counts += count(function.node_def, function.ret.values())
        return counts

    return count(definition.node, [output.op.name for output in graph.outputs])


@pytest.mark.parametrize(
    ("mode", "packed", "dropout"),
    [
        pytest.param("on", False, 0.0, marks=pytest.mark.table),
        pytest.param("on", False, 0.1, marks=pytest.mark.table),
        ("on", True, 0.0),
        ("off", False, 0.1),
    ],
)
def test_the_last_product_of_a_block_is_not_computed_again(mode, packed, dropout, fast_choice):
    fast_choice(mode)
    config = CONFIG.replace(hidden_dropout_prob=dropout)
    kept, again = (
        executed(training_step(config.replace(recompute=recompute), packed))
        for recompute in (False, True)
    )
    # Query, key and value; the intermediate layer.
    assert again["MatMul"] - kept["MatMul"] == 2 * LAYERS
    # Logits of attention, and its context.
    assert again["BatchMatMulV2"] - kept["BatchMatMulV2"] == 2 * LAYERS


@pytest.mark.parametrize("mode", ["on", pytest.param("off", marks=pytest.mark.table)])
def test_the_graph_has_the_operations_of_equal_layers_once(mode, fast_choice):
    fast_choice(mode)

    def products(num_layers: int) -> int:
        config = CONFIG.replace(recompute=True, num_hidden_layers=num_layers)
        graph = training_step(config, packed=True).as_graph_def()
        bodies = [graph.node, *(function.node_def for function in graph.library.function)]
        return sum(node.op in ("MatMul", "BatchMatMulV2") for body in bodies for node in body)

    assert products(5) == products(3) > 0


def test_under_xla():
    plain, again = (make_encoder(recompute, packed=False) for recompute in (False, True))
    again.set_weights(plain.get_weights())
    compiled = make_gradients(again, jit_compile=True)
    assert_same(compiled(*make_inputs()), make_gradients(plain)(*make_inputs()))


def test_on_two_devices(two_devices):
    plain = make_encoder(recompute=False, packed=True)
    with two_devices.scope():
        again = make_encoder(recompute=True, packed=True)
    again.set_weights(plain.get_weights())
    expected = make_gradients(plain)(*make_inputs())
    found = two_devices.run(make_gradients(again), make_inputs())
    for replica in zip(*map(two_devices.experimental_local_results, found), strict=True):
        assert_same(replica, expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_gradient_is_not_hidden(bad):
    rows, total = tf.ones([3, 4]), tf.constant([bad, 1.0])
    assert not np.isfinite(_after(total, rows)).any()
    np.testing.assert_array_equal(_after(tf.constant([2.0, bad]), rows), rows)
