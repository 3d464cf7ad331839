"""Compiled models: they are saved with their optimizer, and what is loaded trains on to the same
bits.
"""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf.keras_compat import keras
from albert_tf.optimization import LAMB, AdamW, WarmupConstantDecay, WarmupPolynomialDecay
from tests.conformance_cases import (
    BASE,
    CLASSES,
    INPUTS,
    MODELS,
    SHALLOW,
    every_model,
    is_trainable,
    make_batch,
    mean_square,
)


@pytest.mark.parametrize("optimizer_class", [AdamW, LAMB])
def test_fit_scales_the_loss_in_float16(optimizer_class):
    batch = make_batch()
    inputs = {name: batch[name] for name in INPUTS}
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = albert_tf.AlbertClassifier(BASE, CLASSES, dropout_rate=0.0)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=optimizer_class(1e-3), loss=loss)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    losses = model.fit(inputs, batch["label_ids"], epochs=12, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert isinstance(model.optimizer, keras.mixed_precision.LossScaleOptimizer)
    assert float(model.optimizer.loss_scale) > 1  # Nothing overflowed for long.
    assert model.train_tf_function.experimental_get_tracing_count() == 1


def optimizers():
    schedule = WarmupPolynomialDecay(0.05, num_train_steps=20, num_warmup_steps=2)
    return {
        "LAMB": LAMB(schedule, bias_correction=True),
        "AdamW": AdamW(WarmupConstantDecay(0.01, num_train_steps=20, num_warmup_steps=2)),
        "Keras's Adam": keras.optimizers.Adam(0.01),
    }


# Masks do not follow from a saved model.
WITHOUT_DROPOUT = SHALLOW.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def compiled_classifier(optimizer_name: str, **arguments) -> keras.Model:
    model = albert_tf.AlbertClassifier(WITHOUT_DROPOUT, CLASSES, dropout_rate=0.0, **arguments)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizers()[optimizer_name], loss, metrics=["accuracy"])
    return model


def fit(model: keras.Model) -> list[float]:
    """The losses of two updates."""
    batch = make_batch()
    inputs = {name: batch[name] for name in INPUTS}
    return model.fit(inputs, batch["label_ids"], epochs=2, shuffle=False, verbose=0).history["loss"]


def equal_variables(left: keras.Model, right: keras.Model) -> None:
    """Of the models and of their optimizers."""
    pairs = zip(
        [*left.variables, *left.optimizer.variables],
        [*right.variables, *right.optimizer.variables],
        strict=True,
    )
    for one, other in pairs:
        np.testing.assert_array_equal(one, other, err_msg=one.name)


@pytest.mark.parametrize(
    ("optimizer_name", "file_name"),
    [
        *((name, "model.keras") for name in optimizers()),
        pytest.param("LAMB", "saved_model", marks=pytest.mark.fast_layers),
    ],
)
def test_a_compiled_model_is_saved_with_its_optimizer(optimizer_name, file_name, eagerly, tmp_path):
    """What is loaded trains on exactly as what was saved, moments and schedule included."""
    model = compiled_classifier(optimizer_name)
    with contextlib.nullcontext() if optimizer_name == "LAMB" else eagerly():
        fit(model)
        model.save(tmp_path / file_name)
        loaded = keras.models.load_model(tmp_path / file_name)
        assert type(loaded.optimizer) is type(model.optimizer)
        assert int(loaded.optimizer.iterations) == 2
        assert fit(loaded) == fit(model)
    equal_variables(model, loaded)


@every_model
def test_every_compiled_model_goes_on_as_it_was_saved(model_class, eager, tmp_path):
    settings = MODELS[model_class].make(WITHOUT_DROPOUT).get_config()
    if "dropout_rate" in settings:
        settings["dropout_rate"] = 0.0
    model = model_class.from_config(settings)
    inputs = make_batch(model_class)
    targets = tf.nest.map_structure(tf.zeros_like, model(inputs))
    model.compile(LAMB(0.01), mean_square)

    def losses(trained: keras.Model) -> list[float]:
        return trained.fit(inputs, targets, epochs=2, shuffle=False, verbose=0).history["loss"]

    losses(model)
    model.save(tmp_path / "model.keras")
    with keras.utils.custom_object_scope({"mean_square": mean_square}):
        loaded = keras.models.load_model(tmp_path / "model.keras")
    assert losses(loaded) == losses(model)
    equal_variables(model, loaded)


@pytest.mark.parametrize("file_name", ["model.keras", "saved_model"])
def test_a_compiled_float16_model_is_saved_with_its_optimizer(file_name, eagerly, tmp_path):
    model = compiled_classifier("AdamW", dtype="mixed_float16")
    with contextlib.nullcontext() if file_name == "saved_model" else eagerly():
        fit(model)
        model.save(tmp_path / file_name)
        loaded = keras.models.load_model(tmp_path / file_name)
        assert isinstance(loaded.optimizer, keras.mixed_precision.LossScaleOptimizer)
        assert fit(loaded) == fit(model)
    equal_variables(model, loaded)


def test_a_compiled_model_says_how_it_was_compiled():
    model = compiled_classifier("LAMB")
    copy = albert_tf.AlbertClassifier.from_config(model.get_config())
    copy.compile_from_config(model.get_compile_config())
    assert copy.optimizer.get_config() == model.optimizer.get_config()
    assert len(copy.optimizer.variables) == len(model.optimizer.variables)


@pytest.mark.parametrize("file_name", ["model.keras", "saved_model"])
def test_training_goes_on_with_frozen_parts(file_name, tmp_path):
    model = compiled_classifier("AdamW")
    model.encoder.embeddings.trainable = False
    model.compile(AdamW(0.01), model.loss)
    fit(model)
    model.save(tmp_path / file_name)
    loaded = keras.models.load_model(tmp_path / file_name)
    assert is_trainable(loaded) == is_trainable(model)
    assert fit(loaded) == fit(model)
    equal_variables(model, loaded)
