"""Every model as a citizen of Keras: fit, save, names, dtype, frozen parts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf.checkpoints import google, huggingface, native
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertSpanPretrainer
from albert_tf.optimization import LAMB, AdamW
from albert_tf.variable_names import variable_name
from tests.conformance_cases import (
    BASE,
    BATCH,
    CLASSES,
    FEW_MODELS,
    INPUTS,
    MODELS,
    SHALLOW,
    assert_equal,
    every_model,
    floats,
    global_policy,
    is_trainable,
    make_batch,
    mean_square,
)

OUTPUTS = FEW_MODELS


# On one replica every model; on two, one for each kind of output.
ON_REPLICAS = [(model, 1) for model in MODELS] + [(model, 2) for model in OUTPUTS]
IN_EVERY_RUN = (albert_tf.AlbertPretrainer, 2)


@pytest.mark.parametrize(
    ("model_class", "replicas"),
    [pytest.param(*row, marks=[pytest.mark.table] * (row != IN_EVERY_RUN)) for row in ON_REPLICAS],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_keras_own_fit_evaluate_predict_and_save(model_class, replicas, two_devices, tmp_path):
    strategy = two_devices if replicas == 2 else tf.distribute.get_strategy()
    inputs = make_batch(model_class)
    with strategy.scope():
        model = MODELS[model_class].make(SHALLOW)
        model.compile(optimizer=AdamW(1e-3), loss=mean_square)
    targets = tf.nest.map_structure(tf.zeros_like, model(inputs))
    history = model.fit(inputs, targets, batch_size=BATCH, epochs=3, verbose=0).history["loss"]
    assert history[-1] < history[0]
    evaluated = model.evaluate(inputs, targets, batch_size=BATCH, verbose=0, return_dict=True)
    squares = [mean_square(None, output) for output in tf.nest.flatten(model(inputs))]
    assert evaluated["loss"] == pytest.approx(float(sum(squares)), rel=1e-5)
    predicted = model.predict(inputs, batch_size=BATCH, verbose=0)
    assert_equal(tf.nest.flatten(predicted), model(inputs), atol=1e-5)
    if replicas == 1:
        path = tmp_path / "model.keras"
        model.save(path)
        loaded = keras.models.load_model(path, compile=False)
        assert_equal(model(inputs), loaded(inputs), atol=1e-5)


def variable_names(model: keras.Model) -> list[str]:
    return [variable_name(variable) for variable in model.variables]


# SavedModels take seconds each.
saved_as = pytest.mark.parametrize(
    ("model_class", "file_name"),
    [
        *(
            pytest.param(model, "model.keras", marks=() if model in OUTPUTS else pytest.mark.table)
            for model in MODELS
        ),
        *(pytest.param(model, "saved_model", marks=pytest.mark.table) for model in OUTPUTS),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)


@saved_as
def test_a_name_is_only_a_name(model_class, file_name, tmp_path):
    """A model of any name, made inside any name scope, has the variables of every other."""
    usual, name = MODELS[model_class].make(BASE), "Teacher-2"
    with tf.name_scope("outer"):
        model = MODELS[model_class].make(BASE, name=name)
    assert model.name == name
    assert variable_names(model) == variable_names(usual)
    native.save(model, str(tmp_path / "native"), {})
    doors = [(native.load_weights, "native")]
    unknown = (albert_tf.AlbertReplacedTokenDetector, AlbertSpanPretrainer)
    if model_class not in (albert_tf.AlbertTokenClassifier, *unknown):
        google.save(model, str(tmp_path / "google"))
        doors.append((google.load, "google"))
    if model_class not in (albert_tf.AlbertSpanLabelerV2, *unknown):
        huggingface.save(model, str(tmp_path / "huggingface"))
        doors.append((huggingface.load, "huggingface"))
    copies = [native.load_model(str(tmp_path / "native"))]
    for load, folder in doors:
        copies.append(MODELS[model_class].make(BASE, name="student"))
        load(copies[-1], str(tmp_path / folder))
    model(make_batch(model_class))  # Keras saves what was called.
    model.save(tmp_path / file_name)
    copies.append(keras.models.load_model(tmp_path / file_name, compile=False))
    assert copies[-1].name == name
    poolers = ("AlbertSpanLabeler", "AlbertTokenClassifier")  # Hugging Face has none there.
    for copy in copies:
        for left, right in zip(model.variables, copy.variables, strict=True):
            if model_class.__name__ not in poolers or "pooler" not in left.name:
                np.testing.assert_array_equal(left, right, err_msg=left.name)


def named_inputs(prefix: str = "") -> dict[str, keras.KerasTensor]:
    return {name: keras.Input([None], name=prefix + name, dtype=tf.int32) for name in INPUTS}


@pytest.mark.parametrize(
    "file_name", ["model.keras", pytest.param("saved_model", marks=pytest.mark.table)]
)
def test_teacher_and_student_in_one_functional_model(file_name, eagerly, tmp_path):
    """Two encoders with weights of their own and one of them twice, trained, saved and loaded."""
    left, right = named_inputs("left_"), named_inputs("right_")
    teacher = albert_tf.AlbertEncoder(BASE, name="teacher")
    student = albert_tf.AlbertEncoder(SHALLOW, name="student")
    vectors = [
        teacher(left)["pooled_output"],
        student(left)["pooled_output"],
        student(right)["pooled_output"],
    ]
    model = keras.Model([left, right], keras.layers.Concatenate()(vectors))
    assert len(model.trainable_variables) == 2 * len(teacher.trainable_variables)
    model.compile(LAMB(0.01), "mse")
    batch = make_batch()
    inputs = [{name: batch[name] for name in INPUTS}] * 2
    targets = np.ones([BATCH, 48], np.float32)
    with eagerly():
        history = model.fit(inputs, targets, epochs=4, verbose=0).history["loss"]
    assert history[-1] < history[0]
    model.save_weights(tmp_path / "weights.h5")
    before, expected = model.get_weights(), model.predict(inputs, verbose=0)
    model.set_weights([0 * value for value in before])
    model.load_weights(tmp_path / "weights.h5")
    np.testing.assert_array_equal(model.predict(inputs, verbose=0), expected)
    model.save(tmp_path / file_name)
    loaded = keras.models.load_model(tmp_path / file_name)
    np.testing.assert_allclose(loaded.predict(inputs, verbose=0), expected, atol=1e-6)
    assert {"teacher", "student"} <= {layer.name for layer in loaded.layers}
    assert isinstance(loaded.optimizer, LAMB)
    native.save(loaded.get_layer("student"), str(tmp_path / "student"), {})
    copy = native.load_model(str(tmp_path / "student"))
    assert_equal(student.variables, copy.variables)


POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")


@pytest.mark.parametrize(
    ("model_class", "policy"),
    [
        pytest.param(*pair, marks=() if pair[0] in OUTPUTS else pytest.mark.table)
        for pair in itertools.product(MODELS, POLICIES)
        if pair[1] != "float32" or pair[0] is albert_tf.AlbertPretrainer
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_dtype_policy_of_its_own(model_class, policy, tmp_path):
    """It computes as under the global policy of that name, and is saved with it."""
    batch, model = make_batch(model_class), MODELS[model_class].make(BASE, dtype=policy)
    with global_policy(policy):
        expected = MODELS[model_class].make(BASE)
    expected.set_weights(model.get_weights())
    model.save(tmp_path / "model.keras")
    copies = [
        model,
        keras.models.load_model(tmp_path / "model.keras", compile=False),
        type(model).from_config(model.get_config()),
    ]
    copies[-1].set_weights(model.get_weights())
    for copy in copies:
        assert all(variable.dtype == tf.float32 for variable in copy.variables)
        pairs = zip(tf.nest.flatten(copy(batch)), tf.nest.flatten(expected(batch)), strict=True)
        for left, right in pairs:
            assert left.dtype == right.dtype
            np.testing.assert_array_equal(left, right)
    assert keras.mixed_precision.global_policy().name == "float32"


def test_a_policy_of_float32_under_a_global_one():
    with global_policy("mixed_bfloat16"):
        model = albert_tf.AlbertEncoder(BASE, dtype="float32")
        batch = make_batch()
        assert model(batch)["sequence_output"].dtype == tf.float32
        assert keras.mixed_precision.global_policy().name == "mixed_bfloat16"


@every_model
def test_what_is_frozen_stays_frozen(model_class, tmp_path):
    batch = make_batch(model_class)
    frozen = MODELS[model_class].make(BASE, trainable=False)
    partly = MODELS[model_class].make(BASE)
    encoder = getattr(partly, "encoder", partly)
    encoder.embeddings.trainable = False
    headless = MODELS[model_class].make(BASE)
    getattr(headless, "encoder", headless).trainable = False
    assert is_trainable(frozen) == []
    assert not any("/embeddings/" in name for name in is_trainable(partly))
    assert len(is_trainable(headless)) == MODELS[model_class].num_head_variables
    for model in (frozen, partly, headless):
        model(batch)
        model.save(tmp_path / "model.keras")
        loaded = keras.models.load_model(tmp_path / "model.keras", compile=False)
        for copy in (loaded, type(model).from_config(model.get_config())):
            assert is_trainable(copy) == is_trainable(model)
            assert copy.get_config() == model.get_config()


def test_an_unknown_argument_is_refused():
    with pytest.raises(TypeError, match="droput_rate"):
        albert_tf.AlbertClassifier(BASE, CLASSES, droput_rate=0.1)


@every_model
def test_a_clone_has_the_settings_and_weights_of_its_own(model_class):
    model, batch = MODELS[model_class].make(SHALLOW, name="mine"), make_batch(model_class)
    getattr(model, "encoder", model).embeddings.trainable = False
    clone = keras.models.clone_model(model)
    assert type(clone) is type(model) and clone.get_config() == model.get_config()
    assert is_trainable(clone) == is_trainable(model)
    expected = floats(model(batch))
    clone.set_weights([0 * value for value in clone.get_weights()])
    assert_equal(model(batch), expected)  # No variable is of both.
    clone.set_weights(model.get_weights())
    assert_equal(clone(batch), expected)


def test_rebuilt_again_and_again_as_tuners_do(eager):
    """A function of hyperparameters makes a compiled model, and each trial a new session."""
    batch = make_batch()
    inputs = {name: batch[name] for name in INPUTS}

    def trial(hidden_size: int, learning_rate: float) -> tuple[list[str], float]:
        keras.backend.clear_session()
        keras.utils.set_random_seed(1)
        config = SHALLOW.replace(hidden_size=hidden_size)
        model = albert_tf.AlbertClassifier(config, CLASSES, dropout_rate=0.0)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(AdamW(learning_rate), loss)
        fitted = model.fit(inputs, batch["label_ids"], epochs=2, verbose=0)
        return variable_names(model), fitted.history["loss"][-1]

    names, first = trial(16, 0.01)
    other_names, other = trial(32, 0.001)
    assert names == other_names
    assert trial(16, 0.01) == (names, first)
    assert other != first


@pytest.mark.table
def test_hub_loads_a_saved_model_as_a_layer(tmp_path):
    hub = pytest.importorskip("tensorflow_hub")
    model, batch = MODELS[albert_tf.AlbertClassifier].make(SHALLOW), make_batch()
    inputs = {name: batch[name] for name in INPUTS}
    expected = model(inputs)
    model.save(tmp_path / "saved_model")
    layer = hub.KerasLayer(str(tmp_path / "saved_model"), trainable=True)
    np.testing.assert_allclose(layer(inputs), expected, atol=1e-6)
    assert len(layer.trainable_weights) == len(model.trainable_variables)
    specs = named_inputs()
    on_top = keras.Model(specs, keras.layers.Dense(CLASSES)(layer(specs)))
    on_top.compile(AdamW(0.01), "mse")
    targets = np.ones([BATCH, CLASSES], np.float32)
    history = on_top.fit(inputs, targets, epochs=3, verbose=0).history["loss"]
    assert history[-1] < history[0]
    assert np.abs(layer(inputs) - expected).max() > 1e-4  # Its own weights moved.


@every_model
def test_shapes_of_outputs(model_class):
    model, batch = MODELS[model_class].make(SHALLOW), make_batch(model_class)
    shapes = {name: tensor.shape for name, tensor in batch.items()}
    found = model.compute_output_shape(shapes)
    expected = tf.nest.map_structure(lambda output: output.shape, model(batch))
    for left, right in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        assert tf.TensorShape(left).is_compatible_with(right)


def test_a_model_for_each_step_in_time():
    """Word ids alone, [B, T, S]: Keras asks the model for the shape of its output."""
    model = albert_tf.AlbertClassifier(SHALLOW, CLASSES)
    ids = make_batch()["input_word_ids"]
    found = keras.layers.TimeDistributed(model)(tf.stack([ids, ids], axis=1))
    assert found.shape == [BATCH, 2, CLASSES]
    np.testing.assert_allclose(found[:, 1], model(ids), atol=1e-5)
