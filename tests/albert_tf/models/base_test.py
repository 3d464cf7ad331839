"""What every model does for Keras: configuration, frozen parts, compiling."""

from __future__ import annotations

import pytest

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertClassifier, AlbertEncoder
from albert_tf.models.base import COMMON_SETTINGS


def test_settings_that_every_model_has(tiny_config):
    model = AlbertEncoder(tiny_config, packed=True, name="e", dtype="mixed_bfloat16")
    assert set(model.get_config()) == set(COMMON_SETTINGS)
    assert model.get_config() == {
        "config": tiny_config.to_dict(),
        "packed": True,
        "name": "e",
        "dtype": "mixed_bfloat16",
        "trainable": True,
        "frozen": [],
    }


def test_a_configuration_may_be_a_dict(tiny_config):
    model = AlbertClassifier(tiny_config.to_dict(), 2)
    assert model.config == tiny_config and isinstance(model.config, AlbertConfig)
    with pytest.raises(UserError, match="unknown key 'hiden_size'"):
        AlbertEncoder({"vocab_size": 5, "hiden_size": 8})
    for other in ("albert-base-v2", None, 3):
        with pytest.raises(UserError, match=f"received {other!r}. .*AlbertClassifier.from_preset"):
            AlbertClassifier(other, 2)


def test_from_config_leaves_its_argument_alone(tiny_config):
    settings = AlbertEncoder(tiny_config).get_config()
    before = dict(settings)
    AlbertEncoder.from_config(settings)
    assert settings == before
    del settings["frozen"]  # Of a model of an earlier version.
    assert AlbertEncoder.from_config(settings).config == tiny_config


def test_the_optimizer_has_its_variables_once_it_is_compiled(tiny_config):
    model = AlbertClassifier(tiny_config, 2)
    model.compile("adam")
    moments = [v for v in model.optimizer.variables if v.shape.rank]
    assert len(moments) >= 2 * len(model.trainable_variables)


def test_a_legacy_optimizer_makes_its_own_variables(tiny_config):
    model = AlbertClassifier(tiny_config, 2)
    model.compile(keras.optimizers.legacy.SGD(0.1))
    assert not hasattr(model.optimizer, "build")
