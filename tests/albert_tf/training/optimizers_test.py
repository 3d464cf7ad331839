"""Optimizers of settings: what they become, and what does not go together."""

from __future__ import annotations

import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.optimization import LAMB, Recipe
from albert_tf.training.optimizers import (
    OptimizerSettings,
    guard_updates,
    make_optimizer,
    recipe_for_batch,
)


@pytest.mark.parametrize("optimizer", ["lamb", "adamw"])
@pytest.mark.parametrize("given, expected", [(0.0, None), (0.5, 0.5)])
def test_a_clipnorm_of_zero_turns_clipping_off(tiny_config, optimizer, given, expected):
    settings = OptimizerSettings(optimizer, 0.1, 1, global_clipnorm=given)
    made = make_optimizer(settings, tiny_config, 10)
    assert made.global_clipnorm == expected
    variable = tf.Variable([3.0, 4.0])
    made.apply_gradients([(tf.constant([30.0, 40.0]), variable)])
    assert bool(tf.reduce_all(tf.math.is_finite(variable)))


def test_settings_that_cannot_be(tiny_config):
    with pytest.raises(UserError, match="--optimizer=sgd is not one of lamb, adamw, tfa_lamb"):
        OptimizerSettings("sgd", 0.1)
    settings = OptimizerSettings("tfa_lamb", 0.1, layerwise_learning_rate_decay=0.9)
    groups = tiny_config.replace(num_hidden_groups=2)
    with pytest.raises(UserError, match="does not go with --optimizer=tfa_lamb"):
        make_optimizer(settings, groups, 10)
    with pytest.raises(UserError, match="num_warmup_steps 11"):
        make_optimizer(OptimizerSettings("lamb", 0.1, 11), tiny_config, 10)


def test_updates_are_guarded_where_it_is_asked_for():
    strategy, optimizer = tf.distribute.get_strategy(), LAMB(0.1)
    assert guard_updates(optimizer, strategy, "float32", 0) is optimizer
    guarded = guard_updates(optimizer, strategy, "float32", 5)
    assert isinstance(guarded, keras.mixed_precision.LossScaleOptimizer)
    tpu = tf.distribute.TPUStrategy.__new__(tf.distribute.TPUStrategy)
    with pytest.raises(UserError, match="--max_bad_steps=5 does not go with --distribution=tpu"):
        guard_updates(optimizer, tpu, "float32", 5)


def test_a_recipe_for_another_batch(capsys):
    recipe = Recipe(0.002, 100, 10)
    assert recipe_for_batch(recipe, 0, 16) == recipe == recipe_for_batch(recipe, 16, 16)
    assert not capsys.readouterr().out
    assert recipe_for_batch(recipe, 64, 16) == Recipe(0.001, 400, 40)
    assert "recipe for batches of 64, scaled to 16: Recipe(" in capsys.readouterr().out
