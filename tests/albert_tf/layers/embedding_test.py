"""Factorized embeddings against NumPy, in both layouts."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.layers.embedding import AlbertEmbedding
from albert_tf.layers.packing import PackedLayout, PaddedLayout

IDS = np.int32([[4, 1, 4, 0], [7, 2, 0, 0]])
TYPES = np.int32([[0, 1, 1, 0], [1, 0, 0, 0]])
MASK = np.int32([[1, 1, 1, 1], [1, 1, 0, 0]])


def make(config) -> AlbertEmbedding:
    """An embedding with random weights, those of its norm included."""
    embedding = AlbertEmbedding(config, name="embeddings")
    embedding.build()
    rng = np.random.default_rng(1)
    embedding.set_weights([rng.normal(size=w.shape) for w in embedding.get_weights()])
    return embedding


def expected(embedding, config) -> np.ndarray:
    """Without the projection, [B, S, E]."""
    x = embedding.word_embeddings.numpy()[IDS] + embedding.token_type_embeddings.numpy()[TYPES]
    x += embedding.position_embeddings.numpy()[: IDS.shape[1]]
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    norm = (x - mean) / np.sqrt(variance + config.layer_norm_eps)
    return norm * embedding.layer_norm.gamma.numpy() + embedding.layer_norm.beta.numpy()


def layouts():
    mask = tf.constant(MASK)
    return {"padded": PaddedLayout(mask), "packed": PackedLayout(mask)}


@pytest.mark.parametrize("kind", ["padded", "packed"])
def test_sum_norm_and_projection(tiny_config, kind):
    embedding, layout = make(tiny_config), layouts()[kind]
    rows = expected(embedding, tiny_config)
    rows = rows[MASK > 0] if kind == "packed" else rows.reshape(8, -1)
    kernel, bias = embedding.projection.get_weights()
    found = embedding(tf.constant(IDS), tf.constant(TYPES), layout)
    assert found.shape[-1] == tiny_config.hidden_size
    np.testing.assert_allclose(found, rows @ kernel + bias, atol=1e-4)


def test_tables(tiny_config):
    embedding = AlbertEmbedding(tiny_config.replace(type_vocab_size=3), name="embeddings")
    embedding.build()
    tables = embedding.weights[:3]
    assert [table.shape.as_list() for table in tables] == [[50, 8], [3, 8], [16, 8]]
    assert all(0 < np.abs(table).max() <= 2 * tiny_config.initializer_range for table in tables)


def test_dropout_comes_before_the_projection(tiny_config):
    config = tiny_config.replace(embedding_size=16, hidden_dropout_prob=0.5)
    embedding, layout = make(config), layouts()["padded"]

    def call(**settings):
        return embedding(tf.constant(IDS), tf.constant(TYPES), layout, **settings).numpy()

    dropped = call(training=True, seed=tf.constant([1, 2]))
    assert 0.2 < (dropped == 0).mean() < 0.8
    np.testing.assert_allclose(dropped[dropped != 0], 2 * call()[dropped != 0], rtol=1e-6)


def test_a_sequence_longer_than_the_positions(tiny_config):
    embedding, ids = make(tiny_config), tf.zeros([1, 17], tf.int32)
    with pytest.raises(ValueError, match="17 is longer than the model's 16 positions.* 16 tok"):
        embedding(ids, ids, PaddedLayout(ids))
    ids = ids[:, :16]
    assert embedding(ids, ids, PaddedLayout(ids)).shape == [16, 16]
