"""One Keras for everybody, and policies that end with their scope."""

import pytest
import tensorflow as tf

from albert_tf import keras_compat
from albert_tf.keras_choice import TF_VERSION
from albert_tf.keras_compat import keras, policy_scope
from albert_tf.models import AlbertClassifier
from albert_tf.models.objectives import ClassificationObjective
from albert_tf.training.steps import Stepper


def test_it_is_keras_2():
    if TF_VERSION < (2, 16):
        assert keras.layers.Dense is tf.keras.layers.Dense
    else:
        assert keras.layers.Dense.__module__.startswith("tf_keras")


def test_layers_inside_take_the_policy():
    before = keras.mixed_precision.global_policy()
    with policy_scope(keras.mixed_precision.Policy("mixed_bfloat16")):
        layer = keras.layers.Dense(2)
        named = keras.layers.Dense(2, dtype="float64")
    assert layer.compute_dtype == "bfloat16" and layer.variable_dtype == "float32"
    assert named.compute_dtype == "float64"
    assert keras.mixed_precision.global_policy().name == before.name
    assert keras.layers.Dense(2).compute_dtype == "float32"


def test_an_error_ends_the_scope_too():
    with pytest.raises(RuntimeError), policy_scope(keras.mixed_precision.Policy("mixed_bfloat16")):
        raise RuntimeError
    assert keras.mixed_precision.global_policy().name == "float32"


def test_a_policy_that_is_in_force_is_not_set_again(monkeypatch):
    monkeypatch.setattr(
        keras.mixed_precision, "set_global_policy", lambda policy: pytest.fail("was set")
    )
    with policy_scope(keras.mixed_precision.Policy("float32")):
        pass


@pytest.mark.skipif(TF_VERSION < (2, 16), reason="There is no Keras 3 beside this TensorFlow.")
def test_an_object_of_keras_3_is_refused(tiny_config):
    import keras as keras_3

    words = r"`optimizer` is a Keras 3 object \(keras\.src\.optimizers\.adam\.Adam\)"
    model = AlbertClassifier(tiny_config, 2)
    for given in ([keras_3.optimizers.Adam()], []):
        with pytest.raises(TypeError, match=words):
            model.compile(*given, **({} if given else {"optimizer": keras_3.optimizers.Adam()}))
    with pytest.raises(TypeError, match=words):
        Stepper(
            ClassificationObjective(model), keras_3.optimizers.Adam(), model.distribute_strategy
        )


def test_objects_of_this_keras_are_taken():
    legacy = keras.optimizers.legacy.Adam()
    for thing in (keras.optimizers.Adam(), legacy, keras.layers.Dense(1), "adam", None):
        keras_compat.require_keras_2(thing)
