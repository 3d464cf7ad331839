"""Updates against NumPy, exclusions, clipping of sparse gradients, configuration."""

import json

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.keras_compat import keras
from albert_tf.optimization import LAMB, AdamW, Muon, WarmupConstantDecay, WarmupPolynomialDecay

pytestmark = pytest.mark.fast_layers


def test_sparse_gradients_are_clipped_by_their_dense_norm():
    """Two gradients for one row add up: the norm is |3 + 1| = 4, not sqrt(3^2 + 1^2)."""
    table = tf.Variable([[0.0], [0.0]], name="table")
    betas = {"beta_1": 0.0, "beta_2": 0.0}
    optimizer = AdamW(1.0, weight_decay_rate=0.0, **betas, epsilon=1.0, global_clipnorm=2.0)
    rows = tf.IndexedSlices(tf.constant([[3.0], [1.0]]), tf.constant([1, 1]), tf.constant([2, 1]))
    optimizer.apply_gradients([(rows, table)])
    np.testing.assert_allclose(table, [[0.0], [-2.0 / (2.0 + 1.0)]], atol=1e-6)


SCHEDULES = (
    WarmupPolynomialDecay(0.5, 100, num_warmup_steps=10, power=2.0, decay_after_warmup=True),
    WarmupConstantDecay(0.5, 100, num_warmup_steps=3, decay_share=0.3),
)


@pytest.mark.parametrize("learning_rate", [0.5, *SCHEDULES])
@pytest.mark.parametrize("optimizer_class", [LAMB, AdamW, Muon])
def test_config_round_trip(optimizer_class, learning_rate):
    """Through the class, and through Keras in both of its formats."""
    optimizer = optimizer_class(
        learning_rate,
        weight_decay_rate=0.02,
        bias_correction=True,
        learning_rate_factors=[("/embeddings/", 0.25)],
        global_clipnorm=3.0,
    )
    copies = [optimizer_class.from_config(optimizer.get_config())]
    for legacy in (False, True):
        serialized = keras.optimizers.serialize(optimizer, use_legacy_format=legacy)
        written = json.loads(json.dumps(serialized))
        copies.append(keras.optimizers.deserialize(written, use_legacy_format=legacy))
    for copy in copies:
        assert type(copy) is optimizer_class
        assert copy.get_config() == optimizer.get_config()
        assert (copy.weight_decay_rate, copy.bias_correction) == (0.02, True)
        assert copy.global_clipnorm == 3.0
    variables = [tf.Variable([1.0, 2.0], name="encoder/embeddings/a") for _ in range(2)]
    for variable, each in zip(variables, (optimizer, copies[0])):
        each.iterations.assign(4)
        each.apply_gradients([(tf.constant([0.3, -0.1]), variable)])
    np.testing.assert_array_equal(*variables)
    assert not np.array_equal(variables[0], [1.0, 2.0])


def test_a_factor_of_the_learning_rate():
    moves = {}
    for name in ("encoder/embeddings/a", "encoder/b"):
        variable = tf.Variable([1.0, 2.0], name=name)
        optimizer = AdamW(0.1, learning_rate_factors=[("/embeddings/", 0.25)])
        optimizer.apply_gradients([(tf.constant([0.3, -0.1]), variable)])
        moves[name] = variable.numpy() - [1.0, 2.0]
    np.testing.assert_allclose(moves["encoder/embeddings/a"], 0.25 * moves["encoder/b"], rtol=1e-5)


def test_updates_are_described():
    """Norms and ratios of small updates, which hardly move the weights they are computed from."""
    optimizer = LAMB(1e-4)
    variables = [tf.Variable([3.0, -4.0], name="kernel"), tf.Variable([1.0], name="bias")]
    for _ in range(3):
        before = [variable.numpy() for variable in variables]
        optimizer.apply_gradients(zip([tf.constant([0.2, 0.1]), tf.constant([0.1])], variables))
    figures = optimizer.describe_updates(variables)
    for variable, old in zip(variables, before):
        name, norm = variable.name[:-2], np.linalg.norm(variable.numpy() - old)
        assert float(figures["update_norm"][name]) == pytest.approx(norm, rel=1e-2)
    # The rate is 1e-4, so the kernel of norm 5 moves by 1e-4 * 5.
    assert float(figures["update_norm"]["kernel"]) == pytest.approx(5e-4, rel=1e-3)
    assert 0.5 < float(figures["trust_ratio"]["kernel"]) < 1.0  # Moments are not corrected.
    assert float(figures["trust_ratio"]["bias"]) == 1.0


def test_updates_of_variables_of_one_name_are_described_apart():
    optimizer = AdamW(1e-4, weight_decay_rate=0.0)
    variables = [tf.Variable([1.0] * size, name="kernel") for size in (4, 16)]
    optimizer.apply_gradients([(tf.ones_like(each), each) for each in variables])
    norms = optimizer.describe_updates(variables)["update_norm"]
    assert list(norms) == ["kernel", "kernel_1"]
    assert float(norms["kernel_1"]) == pytest.approx(2 * float(norms["kernel"]), rel=1e-4)


@pytest.mark.parametrize("optimizer_class", [LAMB, AdamW])
def test_there_is_no_decay_beside_its_own(optimizer_class):
    """Keras's would decay all variables, and by 0 where it is not turned off."""
    with pytest.raises(ValueError, match="decays every variable: use weight_decay_rate"):
        optimizer_class(0.1, weight_decay=0.1)
    earlier = {**optimizer_class(0.1).get_config(), "weight_decay": 0}
    assert optimizer_class.from_config(earlier).weight_decay is None


def test_exclusions_are_added_as_keras_adds_them():
    optimizer = AdamW(0.1)
    optimizer.exclude_from_weight_decay(var_names=["word_embeddings"])
    assert not optimizer.is_decayed("encoder/embeddings/word_embeddings")
    assert not optimizer.is_decayed("layer_norm/beta") and optimizer.is_decayed("kernel")
    copy = AdamW.from_config(optimizer.get_config())
    assert not copy.is_decayed("encoder/embeddings/word_embeddings")
    with pytest.raises(ValueError, match="give names in var_names"):
        optimizer.exclude_from_weight_decay(var_list=[tf.Variable(1.0)])
