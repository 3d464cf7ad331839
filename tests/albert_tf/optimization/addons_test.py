"""TensorFlow Addons' LAMB is ours with bias correction; without Addons an error says so."""

import importlib.util

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.models import AlbertClassifier
from albert_tf.optimization import LAMB, WarmupPolynomialDecay, addons_lamb

pytestmark = pytest.mark.fast_layers

HAS_ADDONS = importlib.util.find_spec("tensorflow_addons") is not None


@pytest.mark.skipif(not HAS_ADDONS, reason="TensorFlow Addons ends at TensorFlow 2.15")
def test_equal_to_ours_with_bias_correction(tiny_config):
    schedule = WarmupPolynomialDecay(0.1, num_train_steps=8, num_warmup_steps=2)
    rng = np.random.default_rng(0)
    optimizers = [addons_lamb(schedule), LAMB(schedule, bias_correction=True)]
    models = [AlbertClassifier(tiny_config, 3) for _ in optimizers]
    models[1].set_weights(models[0].get_weights())
    for optimizer, model in zip(optimizers, models):
        optimizer.build(model.trainable_variables)
    before = models[0].get_weights()
    for _ in range(6):
        gradients = [rng.normal(size=v.shape).astype(np.float32) for v in before]
        for optimizer, model in zip(optimizers, models):
            pairs = zip(map(tf.constant, gradients), model.trainable_variables)
            optimizer.apply_gradients(pairs, skip_gradients_aggregation=True)
    for theirs, ours, old in zip(models[0].get_weights(), models[1].get_weights(), before):
        np.testing.assert_allclose(theirs, ours, atol=1e-5)
        assert np.abs(ours - old).max() > 1e-3


@pytest.mark.skipif(HAS_ADDONS, reason="TensorFlow Addons is installed")
def test_without_addons():
    with pytest.raises(UserError, match="tfa_lamb needs TensorFlow Addons.*bias correction"):
        addons_lamb(0.1)
