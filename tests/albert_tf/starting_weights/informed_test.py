"""Sinusoids, heads that look at their offset, and what stays random."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from albert_tf.starting_weights import count_words, informed, set_informed_weights
from albert_tf.variable_names import variable_name

V = 60


@pytest.fixture(scope="module")
def statistics():
    random = np.random.default_rng(1)
    return count_words([random.integers(0, V, size=[64, 32])], V, (0, 1, 2, 3, 4))


def make_model(**changes) -> AlbertPretrainer:
    fields = dict(
        vocab_size=V, embedding_size=32, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, max_position_embeddings=40,
    )  # fmt: skip
    return AlbertPretrainer(AlbertConfig(**{**fields, **changes}))


@pytest.mark.parametrize("offset", [-3, -1, 0, 2, 7])
def test_a_shift_turns_a_position_into_another(offset):
    waves = informed.sinusoids(50, 16)
    turned = waves[10:40] @ informed.shift(16, offset)
    np.testing.assert_allclose(turned, waves[10 + offset : 40 + offset], atol=1e-4)


def test_sinusoids():
    waves = informed.sinusoids(50, 16)
    np.testing.assert_allclose(np.square(waves).mean(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(waves[:, 0], np.sqrt(2) * np.sin(np.pi * np.arange(50)), atol=1e-5)
    np.testing.assert_allclose(
        waves[:, 15], np.sqrt(2) * np.cos(np.pi * np.arange(50) / 500), atol=1e-5
    )


def test_half_of_the_heads_look_at_their_offset(statistics):
    model = make_model(embedding_size=64, hidden_size=128)
    set_informed_weights(model, statistics)
    ids = np.random.default_rng(2).integers(5, V, size=[3, 30])
    probabilities = model.encoder(ids, output_attentions=True)["attention_probs"]
    inner = np.arange(5, 25)
    for layer in probabilities:
        mean = layer.numpy().mean(axis=0)  # [N, S, S]
        for head, offset in ((0, 1), (1, -1)):
            assert (mean[head].argmax(axis=1)[inner] == inner + offset).mean() > 0.9, head
        for head in (2, 3):
            assert mean[head].max() < 0.2


def test_words_and_positions_share_an_embedding(statistics):
    model = make_model()
    other_row = model.encoder.embeddings.word_embeddings.numpy()[0]
    set_informed_weights(model, statistics)
    words = model.encoder.embeddings.word_embeddings.numpy()
    positions = model.encoder.embeddings.position_embeddings.numpy()
    assert informed.position_size(32, 16) == 8
    np.testing.assert_array_equal(words[:, 24:], 0)
    np.testing.assert_array_equal(positions[:, :24], 0)
    np.testing.assert_allclose(np.square(words[5:, :24]).mean(), 0.04**2, rtol=1e-4)
    np.testing.assert_array_equal(words[0, :24], other_row[:24])  # It never occurs.
    kernel = model.encoder.embeddings.projection.kernel.numpy()
    np.testing.assert_allclose(kernel @ kernel.T, 2 * np.eye(32), atol=1e-4)


def test_the_output_begins_at_the_frequencies(statistics):
    """The first loss is near the entropy of the words, far below ln V where they are uneven."""
    model = make_model()
    set_informed_weights(model, statistics)
    bias = model.masked_lm.output_bias.numpy()
    np.testing.assert_array_equal(bias, statistics.log_probabilities())
    inputs = {
        "input_word_ids": tf.ones([1, 6], tf.int32),
        "masked_lm_positions": tf.constant([[2]]),
    }
    logits = model(inputs)["masked_lm_logits"].numpy()[0, 0]
    assert np.corrcoef(logits, bias)[0, 1] > 0.9


def test_everything_else_stays(statistics):
    model = make_model()
    before = {variable_name(each): each.numpy() for each in model.variables}
    set_informed_weights(model, statistics)
    changed = {
        variable_name(each)
        for each in model.variables
        if not np.array_equal(each.numpy(), before[variable_name(each)])
    }
    block = "encoder/transformer/group_0_inner_0_attention"
    assert changed == {
        "encoder/embeddings/word_embeddings",
        "encoder/embeddings/position_embeddings",
        "encoder/embeddings/projection/kernel",
        f"{block}/query/kernel",
        f"{block}/key/kernel",
        "masked_lm/output_bias",
    }


def test_the_same_seed_gives_the_same_weights(statistics):
    weights = []
    for seed in (5, 5, 6):
        keras.utils.set_random_seed(1)
        model = make_model()
        set_informed_weights(model, statistics, seed)
        weights.append(model.encoder.embeddings.projection.kernel.numpy())
    np.testing.assert_array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])


@pytest.mark.parametrize(
    "changes", [{"embedding_size": 64}, {"embedding_size": 128}, {"embedding_size": 8}], ids=str
)
def test_models_that_it_is_not_for(statistics, changes):
    with pytest.raises(UserError, match=f"embedding_size {changes['embedding_size']} and hidden"):
        set_informed_weights(make_model(**changes), statistics)
