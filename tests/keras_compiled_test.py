"""Compiled models: they are saved with their optimizer, and what is loaded trains on to the same
bits.
"""

from __future__ import annotations

import contextlib

import pytest
import tensorflow as tf

import albert_tf
from albert_tf.keras_compat import keras
from albert_tf.optimization import LAMB, AdamW, Muon, WarmupConstantDecay, WarmupPolynomialDecay
from tests.conformance_cases import (
    BASE,
    CLASSES,
    INPUTS,
    MODELS,
    SHALLOW,
    assert_equal,
    every_model,
    global_policy,
    is_trainable,
    make_batch,
    mean_square,
)


@pytest.mark.parametrize("optimizer_class", [AdamW, pytest.param(LAMB, marks=pytest.mark.table)])
def test_fit_scales_the_loss_in_float16(optimizer_class):
    batch = make_batch()
    inputs = {name: batch[name] for name in INPUTS}
    with global_policy("mixed_float16"):
        model = albert_tf.AlbertClassifier(BASE, CLASSES, dropout_rate=0.0)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=optimizer_class(1e-3), loss=loss)
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
        "Muon": Muon(0.01),
        "Keras's Adam": keras.optimizers.Adam(0.01),
    }


# Masks do not follow from a saved model.
WITHOUT_DROPOUT = SHALLOW.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def fit(model: keras.Model) -> list[float]:
    """The losses of two updates."""
    batch = make_batch()
    inputs = {name: batch[name] for name in INPUTS}
    return model.fit(inputs, batch["label_ids"], epochs=2, shuffle=False, verbose=0).history["loss"]


@pytest.mark.parametrize(
    ("optimizer_name", "dtype", "file_name"),
    [
        ("AdamW", "mixed_float16", "model.keras"),
        pytest.param("LAMB", "float32", "saved_model", marks=pytest.mark.fast_layers),
        ("Muon", "float32", "model.keras"),
        pytest.param("LAMB", "float32", "model.keras", marks=pytest.mark.table),
        pytest.param("Keras's Adam", "float32", "model.keras", marks=pytest.mark.table),
        pytest.param("AdamW", "mixed_float16", "saved_model", marks=pytest.mark.table),
    ],
)
def test_a_compiled_model_is_saved_with_its_optimizer(
    optimizer_name, dtype, file_name, eagerly, tmp_path
):
    """What is loaded trains on exactly as what was saved, moments and schedule included."""
    model = albert_tf.AlbertClassifier(WITHOUT_DROPOUT, CLASSES, dropout_rate=0.0, dtype=dtype)
    model.encoder.embeddings.trainable = False
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizers()[optimizer_name], loss, metrics=["accuracy"])
    with contextlib.nullcontext() if file_name == "saved_model" else eagerly():
        fit(model)
        model.save(tmp_path / file_name)
        loaded = keras.models.load_model(tmp_path / file_name)
        assert type(loaded.optimizer) is type(model.optimizer)
        assert is_trainable(loaded) == is_trainable(model)
        assert int(loaded.optimizer.iterations) == 2
        assert fit(loaded) == fit(model)
    assert_equal(loaded.variables, model.variables)
    assert_equal(loaded.optimizer.variables, model.optimizer.variables)


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
    assert_equal(loaded.variables, model.variables)
    assert_equal(loaded.optimizer.variables, model.optimizer.variables)
