"""Muon as PyTorch and Keras 3 compute it, which variables move by it, and where it runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.keras_compat import keras, policy_scope
from albert_tf.models import AlbertPretrainer
from albert_tf.models.objectives import PretrainingObjective
from albert_tf.optimization import AdamW, Muon
from albert_tf.optimization.updates import muon_update, orthogonalized
from albert_tf.training.steps import Stepper

GOLDENS = Path(__file__).parents[2] / "goldens/muon"
ONE_DEVICE = tf.distribute.OneDeviceStrategy("CPU:0")
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["wide", "tall", "square"])
@pytest.mark.parametrize("library", ["torch", "keras"])
def test_six_updates_of_other_libraries(library, name, compiled):
    update = tf.function(muon_update, jit_compile=True) if compiled else muon_update
    with np.load(GOLDENS / f"{library}.npz") as golden:
        arrays = [golden[f"{name}/{part}"] for part in ("weights", "gradients", "updated")]
        settings = [float(golden[each]) for each in ("learning_rate", "momentum", "weight_decay")]
    weights, gradients, expected = arrays
    found = tf.constant(weights)
    m = tf.zeros_like(found)
    for gradient in gradients:
        found, m = update(found, tf.constant(gradient), m, *settings)
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert np.abs(found - weights).max() > 0.05


def test_what_is_orthogonalized():
    """Singular values come near 1, whatever they were; no gradient gives no direction."""
    values = np.linalg.svd(orthogonalized(RNG.normal(size=[40, 12]) * 1e3), compute_uv=False)
    assert values.min() > 0.6 and values.max() < 1.3
    assert not np.any(orthogonalized(tf.zeros([3, 2])))


def test_the_layers_matrices_move_by_muon_and_all_else_by_adamw(tiny_config):
    """All names of the layers' kernels, of any sharing; the moments are those that are needed."""
    optimizers = Muon(0.01, bias_correction=True), AdamW(0.01, bias_correction=True)
    moved = []
    for optimizer in optimizers:
        keras.utils.set_random_seed(1)
        model = AlbertPretrainer(tiny_config.replace(parameter_sharing="none"))
        variables = model.trainable_variables
        optimizer.build(variables)
        gradients = [tf.ones_like(each) * 0.1 for each in variables]
        optimizer.apply_gradients(zip(gradients, variables), skip_gradients_aggregation=True)
        moved.append([each.numpy() for each in variables])
    by_muon = [each for each in variables if optimizers[0].orthogonalizes(each)]
    assert len(by_muon) == 6 * tiny_config.num_hidden_layers
    for variable, muon, adamw in zip(variables, *moved):
        is_layers = "/transformer/" in variable.name and "kernel" in variable.name
        assert is_layers is not np.array_equal(muon, adamw), variable.name
    assert len(optimizers[1].variables) - len(optimizers[0].variables) == len(by_muon)


def test_what_is_named_has_to_be_a_matrix():
    optimizer = Muon(0.1, matrices=["mine"])
    shapes = {"mine/kernel": [2, 3], "mine/bias": [3], "mine/table": [2, 3, 4], "other": [2, 3]}
    variables = [tf.Variable(tf.ones(shape), name=name) for name, shape in shapes.items()]
    assert [optimizer.orthogonalizes(each) for each in variables] == [True, False, False, False]
    settings = optimizer.get_config()
    assert (settings["matrices"], settings["momentum"]) == (["mine"], 0.95)


def test_rate_factor_decay_and_description():
    """The norm of an update is described from what is left of it, within a few percent."""
    matrix = tf.Variable(RNG.normal(size=[16, 24]).astype(np.float32), name="transformer/a/kernel")
    settings = {"learning_rate_factors": [("transformer", 0.5)], "weight_decay_rate": 0.3}
    optimizer = Muon(0.01, **settings)
    m = tf.zeros_like(matrix)
    for _ in range(3):
        before = matrix.numpy()
        gradient = tf.constant(RNG.normal(size=[16, 24]).astype(np.float32))
        optimizer.apply_gradients([(gradient, matrix)])
        clipped = tf.clip_by_norm(gradient, 1.0)
        expected, m = muon_update(tf.constant(before), clipped, m, 0.005, 0.95, 0.3)
        np.testing.assert_allclose(matrix, expected, atol=1e-6)
    figures = optimizer.describe_updates([matrix])
    norm = np.linalg.norm(matrix.numpy() - before)
    assert float(figures["update_norm"]["transformer/a/kernel"]) == pytest.approx(norm, rel=0.05)
    assert float(figures["trust_ratio"]["transformer/a/kernel"]) == 1.0


def after(config, data, strategy=ONE_DEVICE, precision="float32", num_steps=2, **settings):
    """The weights after two updates."""
    keras.utils.set_random_seed(1)
    with strategy.scope(), policy_scope(keras.mixed_precision.Policy(precision)):
        model, optimizer = AlbertPretrainer(config), Muon(0.01)
        optimizer.build(model.trainable_variables)
    stepper = Stepper(PretrainingObjective(model), optimizer, strategy, **settings)
    outcome = stepper.train(iter(stepper.distribute(data)), tf.constant(num_steps))
    assert int(outcome.num_bad) == 0
    return np.concatenate([values.ravel() for values in model.get_weights()])


def test_parts_of_a_batch_on_two_replicas_change_nothing(
    tiny_config, two_devices, pretraining_data, eagerly
):
    with eagerly():
        whole = after(tiny_config, pretraining_data(0))
    parts = after(tiny_config, pretraining_data(0), two_devices, num_micro_batches=2)
    np.testing.assert_allclose(parts, whole, atol=1e-5)


def test_compiled_as_a_whole_and_in_low_precision(tiny_config, pretraining_data, eagerly):
    data = pretraining_data(0)
    with eagerly():
        plain = after(tiny_config, data)
        low = after(tiny_config, data, precision="mixed_bfloat16")
        start = after(tiny_config, data, num_steps=0)
    compiled = after(tiny_config, data, jit_compile=True)
    np.testing.assert_allclose(compiled, plain, atol=1e-5)
    # Gradients of eight bits of precision change directions a little: most of the way is the same.
    way, low_way = plain - start, low - start
    cosine = way @ low_way / np.linalg.norm(way) / np.linalg.norm(low_way)
    assert low.dtype == np.float32 and 0.9 < cosine < 1 - 1e-6
