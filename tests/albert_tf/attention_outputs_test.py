"""The attention probabilities that an encoder gives on request."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertClassifier, AlbertEncoder
from albert_tf.config import AlbertConfig
from albert_tf.keras_compat import keras
from tests.conformance_cases import BASE, BATCH, INPUTS, LENGTH, make_batch

REAL = make_batch()["input_mask"].numpy().astype(bool)


def attentions(config: AlbertConfig, packed: bool, **arguments) -> tuple[AlbertEncoder, dict]:
    tf.random.set_seed(1)
    encoder = AlbertEncoder(config, packed)
    for variable in encoder.variables:
        if "kernel" in variable.name:  # So that the probabilities differ from one another.
            variable.assign(10 * variable)
    return encoder, encoder(make_batch(), output_attentions=True, **arguments)


@pytest.mark.parametrize("packed", [True, False])
def test_one_tensor_of_probabilities_a_layer(packed):
    encoder, outputs = attentions(BASE, packed)
    probs = outputs["attention_probs"]
    assert [each.shape for each in probs] == [[BATCH, 2, LENGTH, LENGTH]] * BASE.num_hidden_layers
    for each in probs:
        of_real = each.numpy().transpose(0, 2, 1, 3)[REAL]  # Queries that are no padding.
        np.testing.assert_allclose(of_real.sum(axis=-1), 1.0, atol=1e-6)
        keys = np.broadcast_to(REAL[:, None, None], each.shape)
        assert each.numpy()[~keys].max() == 0.0
    usual = encoder(make_batch())
    assert "attention_probs" not in usual
    for left, right in zip(outputs["encoder_outputs"], usual["encoder_outputs"], strict=True):
        np.testing.assert_allclose(left.numpy()[REAL], right.numpy()[REAL], atol=1e-5)


def test_they_are_the_softmax_of_queries_and_keys():
    """The first layer's, computed from its weights with NumPy."""
    encoder, outputs = attentions(BASE, packed=False)
    batch = make_batch()
    layer = encoder.transformer.attention_blocks[0]
    tables = encoder.embeddings
    x = tf.gather(tables.word_embeddings, batch["input_word_ids"])
    x += tf.gather(tables.token_type_embeddings, batch["input_type_ids"])
    x = tables.projection(tables.layer_norm(x + tables.position_embeddings[:LENGTH])).numpy()

    def heads(dense: keras.layers.Dense) -> np.ndarray:
        return dense(x).numpy().reshape(BATCH, LENGTH, 2, 8).transpose(0, 2, 1, 3)

    logits = heads(layer.query) @ heads(layer.key).transpose(0, 1, 3, 2) / np.sqrt(8)
    exponentials = np.exp(logits - logits.max(-1, keepdims=True)) * REAL[:, None, None]
    expected = exponentials / exponentials.sum(-1, keepdims=True)
    np.testing.assert_allclose(outputs["attention_probs"][0], expected, atol=1e-5)


def test_before_dropout_and_with_a_gradient():
    config = BASE.replace(attention_probs_dropout_prob=0.5, recompute=True)
    seed = tf.constant([1, 2])
    with tf.GradientTape() as tape:
        encoder, outputs = attentions(config, packed=True, training=True, seed=seed)
        loss = tf.add_n([tf.reduce_sum(each**2) for each in outputs["attention_probs"]])
    first = outputs["attention_probs"][0].numpy().transpose(0, 2, 1, 3)[REAL]
    np.testing.assert_allclose(first.sum(axis=-1), 1.0, atol=1e-6)
    query = encoder.transformer.attention_blocks[0].query.kernel
    assert np.abs(tape.gradient(loss, query)).max() > 0


def test_in_a_functional_model_and_of_a_task_model(tmp_path):
    model = AlbertClassifier(BASE, 3)
    inputs = {name: keras.Input([None], name=name, dtype=tf.int32) for name in INPUTS}
    probs = model.encoder(inputs, output_attentions=True)["attention_probs"]
    watched = keras.Model(inputs, probs)
    batch = {name: make_batch()[name] for name in INPUTS}
    watched.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for left, right in zip(watched(batch), loaded(batch), strict=True):
        assert left.shape == [BATCH, 2, LENGTH, LENGTH]
        np.testing.assert_array_equal(left, right)
