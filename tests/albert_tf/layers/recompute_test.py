"""Recomputation computes again what a gradient needs, and nothing more."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertConfig, AlbertEncoder
from albert_tf.layers.recompute import _once_known

CONFIG = AlbertConfig(
    vocab_size=50,
    embedding_size=8,
    hidden_size=16,
    num_hidden_layers=4,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
LAYERS = CONFIG.num_hidden_layers


def make_encoder(recompute: bool, packed: bool, dropout: float = 0.0) -> AlbertEncoder:
    return AlbertEncoder(
        CONFIG.replace(recompute=recompute, hidden_dropout_prob=dropout), packed=packed
    )


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
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def operations(recompute: bool, packed: bool, dropout: float) -> collections.Counter:
    """How many operations of each kind a training step needs."""
    gradients = make_gradients(make_encoder(recompute, packed, dropout))
    ids = tf.TensorSpec([2, 16], tf.int32)
    graph = gradients.get_concrete_function(ids, ids).graph
    needed = tf.compat.v1.graph_util.extract_sub_graph(
        graph.as_graph_def(), [output.op.name for output in graph.outputs]
    )
    return collections.Counter(node.op for node in needed.node)


@pytest.mark.parametrize(("packed", "dropout"), [(False, 0.0), (False, 0.1), (True, 0.0)])
def test_the_last_product_of_a_block_is_not_computed_again(packed, dropout):
    kept, again = (operations(recompute, packed, dropout) for recompute in (False, True))
    # Query, key and value; the intermediate layer.
    assert again["MatMul"] - kept["MatMul"] == 2 * LAYERS
    # Logits of attention, and its context.
    assert again["BatchMatMulV2"] - kept["BatchMatMulV2"] == 2 * LAYERS


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
    assert not np.isfinite(_once_known(total, rows)).any()
    np.testing.assert_array_equal(_once_known(tf.constant([2.0, bad]), rows), rows)
