"""Optimizers of settings: what they become, and what does not go together."""

import pytest
import tensorflow as tf

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.optimization import LAMB, AdamW, Muon
from albert_tf.training import optimizers
from albert_tf.training.optimizers import (
    OptimizerSettings,
    guard_updates,
    make_optimizer,
)


@pytest.mark.parametrize("optimizer", ["lamb", "adamw"])
def test_a_clipnorm_of_zero_turns_clipping_off(tiny_config, optimizer):
    settings = OptimizerSettings(optimizer, 0.1, 1, global_clipnorm=0.0)
    made = make_optimizer(settings, tiny_config, 10)
    assert made.global_clipnorm is None
    variable = tf.Variable([3.0, 4.0])
    made.apply_gradients([(tf.constant([30.0, 40.0]), variable)])
    assert bool(tf.reduce_all(tf.math.is_finite(variable)))


def test_settings_that_cannot_be(tiny_config):
    with pytest.raises(
        UserError, match="--optimizer=sgd: value should be one of <lamb|adamw|muon|"
    ):
        OptimizerSettings("sgd", 0.1)
    settings = OptimizerSettings("tfa_lamb", 0.1, layerwise_learning_rate_decay=0.9)
    groups = tiny_config.replace(num_hidden_layers=2, num_hidden_groups=2)
    for given in (settings, OptimizerSettings("tfa_lamb", 0.1, ema_decay=0.9)):
        with pytest.raises(UserError, match="=0.9 does not work with --optimizer=tfa_lamb"):
            make_optimizer(given, groups, 10)
    with pytest.raises(UserError, match="num_warmup_steps 11"):
        make_optimizer(OptimizerSettings("lamb", 0.1, 11), tiny_config, 10)


def test_every_setting_reaches_the_optimizer(tiny_config):
    settings = OptimizerSettings(
        "adamw", 0.25, num_warmup_steps=2, learning_rate_power=2.0, decay_after_warmup=True,
        bias_correction=True, layerwise_learning_rate_decay=0.5, weight_decay_rate=0.125,
        global_clipnorm=3.0, beta_1=0.8, beta_2=0.98, epsilon=1e-3, ema_decay=0.99,
    )  # fmt: skip
    made = make_optimizer(
        settings, tiny_config.replace(num_hidden_layers=2, num_hidden_groups=2), 10
    )
    assert type(made) is AdamW
    assert (made.beta_1, made.beta_2, made.epsilon) == (0.8, 0.98, 1e-3)
    assert (made.bias_correction, made.weight_decay_rate, made.global_clipnorm) == (True, 0.125, 3)
    assert (made.use_ema, made.ema_momentum) == (True, 0.99)
    assert made.rate_factor("encoder/embeddings/x") == 0.25
    assert made.rate_factor("encoder/pooler/kernel") == 1.0
    rates = [float(made._learning_rate(step)) for step in (1, 2, 6, 10)]
    assert rates == pytest.approx([0.125, 0.25, 0.0625, 0.0])


def test_muon(tiny_config):
    settings = OptimizerSettings(
        "muon", 0.25, muon_momentum=0.8, beta_2=0.98, weight_decay_rate=0.5, bias_correction=True
    )
    made = make_optimizer(settings, tiny_config, 10)
    assert type(made) is Muon and (made.momentum, made.beta_2) == (0.8, 0.98)
    assert (made.weight_decay_rate, made.bias_correction) == (0.5, True)


def test_settings_that_are_left_out(tiny_config):
    made = make_optimizer(OptimizerSettings("lamb", 0.25), tiny_config, 10)
    assert type(made) is LAMB and made.learning_rate_factors == ()
    assert (made.bias_correction, made.weight_decay_rate, made.global_clipnorm) == (False, 0.01, 1)
    assert (made.beta_1, made.beta_2, made.epsilon) == (0.9, 0.999, 1e-6)
    rates = [float(made._learning_rate(step)) for step in (0, 5, 10)]
    assert rates == pytest.approx([0.25, 0.125, 0.0])


def test_tensorflow_addons_optimizer(tiny_config, monkeypatch):
    calls = []
    monkeypatch.setattr(
        optimizers, "addons_lamb", lambda *given, **named: calls.append((given, named)) or "made"
    )
    settings = OptimizerSettings("tfa_lamb", 0.25, weight_decay_rate=0.5, global_clipnorm=0)
    assert make_optimizer(settings, tiny_config, 10) == "made"
    ((schedule,), named), *_ = calls
    assert schedule.get_config()["peak"] == 0.25
    moments = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6}
    assert named == {"weight_decay_rate": 0.5, "global_clipnorm": None, **moments}


@pytest.mark.parametrize(
    ("precision", "max_bad_steps", "scale"),
    [
        ("float32", 0, None),
        ("float32", 5, 1),
        ("mixed_bfloat16", 0, None),
        ("mixed_bfloat16", 2, 1),
        ("mixed_float16", 0, 2**15),
        ("mixed_float16", 2, 2**15),
    ],
)
def test_how_the_loss_is_scaled(precision, max_bad_steps, scale):
    optimizer, strategy = LAMB(0.1), tf.distribute.get_strategy()
    guarded = guard_updates(optimizer, strategy, precision, max_bad_steps)
    if scale is None:
        assert guarded is optimizer
    else:
        assert isinstance(guarded, keras.mixed_precision.LossScaleOptimizer)
        assert guarded.inner_optimizer is optimizer and guarded.initial_scale == scale


def test_a_tpu_scales_nothing():
    optimizer, tpu = LAMB(0.1), tf.distribute.TPUStrategy.__new__(tf.distribute.TPUStrategy)
    assert guard_updates(optimizer, tpu, "mixed_bfloat16", 0) is optimizer
    for precision, count in (("mixed_float16", 0), ("float32", 5)):
        with pytest.raises(UserError, match=f"={precision} with --max_bad_steps={count} does not"):
            guard_updates(optimizer, tpu, precision, count)
