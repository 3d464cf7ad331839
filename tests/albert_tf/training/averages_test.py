"""Averages of the weights: made as Keras makes them, evaluated and saved, kept by checkpoints."""

from __future__ import annotations

import dataclasses
import shutil

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.checkpoints import native
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from albert_tf.models.objectives import PretrainingObjective
from albert_tf.optimization import LAMB, AdamW, Muon
from albert_tf.training import (
    Evaluator,
    Experiment,
    LoopSettings,
    OptimizerSettings,
    Stepper,
    run_experiment,
)
from albert_tf.training.state import TrainingState
from tests.run_results import check_tensors, figures

ONE_DEVICE = tf.distribute.OneDeviceStrategy("CPU:0")


def weights_of(model) -> list[np.ndarray]:
    return [each.numpy() for each in model.trainable_variables]


@pytest.mark.parametrize("kind", [AdamW, pytest.param(Muon, marks=pytest.mark.table)])
def test_averages_of_two_replicas(tiny_config, two_devices, pretraining_data, kind):
    """They follow the weights from the first ones on, and take their place for a while."""
    with two_devices.scope():
        model = AlbertPretrainer(tiny_config)
        optimizer = kind(0.01, use_ema=True, ema_momentum=0.75)
        optimizer.build(model.trainable_variables)
    stepper = Stepper(PretrainingObjective(model), optimizer, two_devices)
    batches = iter(stepper.distribute(pretraining_data(0)))
    expected = weights_of(model)
    for _ in range(3):
        stepper.train(batches, tf.constant(1))
        weights = weights_of(model)
        expected = [0.75 * old + 0.25 * new for old, new in zip(expected, weights)]
    with pytest.raises(ZeroDivisionError), stepper.averaged():
        for found, value in zip(weights_of(model), expected, strict=True):
            np.testing.assert_allclose(found, value, atol=1e-6)
        assert any(np.any(found != value) for found, value in zip(weights_of(model), weights))
        for variable in model.trainable_variables:
            first, second = two_devices.experimental_local_results(variable)
            np.testing.assert_array_equal(first, second)
        raise ZeroDivisionError
    for found, value in zip(weights_of(model), weights, strict=True):
        np.testing.assert_array_equal(found, value)


@pytest.fixture
def experiment(tiny_config, pretraining_data, new_experiment):
    """(folder, ema_decay=0.5) -> an experiment of two updates."""

    def make(folder: str, ema_decay: float = 0.5, last: int = 2, **loop) -> Experiment:
        keras.utils.set_random_seed(1)
        found = new_experiment(
            tiny_config,
            folder,
            OptimizerSettings("lamb", 0.01, schedule="wsd", decay_share=0.0, ema_decay=ema_decay),
            LoopSettings(last, steps_per_loop=1, eval_steps=1, checkpoint_steps=1, **loop),
        )
        task, held_out = found.objective, pretraining_data(1000).take(2)
        return dataclasses.replace(found, evaluator=Evaluator([(task, held_out)], ONE_DEVICE))

    return make


@pytest.mark.usefixtures("eager")
def test_a_run_evaluates_and_saves_averages(experiment, tmp_path):
    """Interrupted, it ends with the same bits."""
    found = experiment("run")
    metrics = run_experiment(found)
    saved = native.load_model(str(tmp_path / "run" / "last"))
    pairs = zip(weights_of(saved), weights_of(found.objective.model), strict=True)
    assert any(np.any(average != weight) for average, weight in pairs)
    data = found.evaluator._parts[0][1]
    of_saved = Stepper(PretrainingObjective(saved), None, ONE_DEVICE).evaluate(data)
    assert of_saved["loss"] == pytest.approx(metrics["loss"], rel=1e-6)
    run_experiment(experiment("parts", last=1))
    run_experiment(experiment("parts"))
    weights = f"last/{native.WEIGHTS_PREFIX}"
    check_tensors(tmp_path / "parts" / weights, tmp_path / "run" / weights)
    assert figures(tmp_path / "parts")[-1] == figures(tmp_path / "run")[-1]


@pytest.mark.usefixtures("eager")
def test_averages_come_and_go_on_request(experiment, tmp_path, capsys):
    """Where they go, training is as if they had never been. New ones begin with the weights."""
    for name, decay in (("on", 0.5), ("off", 0.0)):
        run_experiment(experiment(name, decay, last=1))
        with pytest.raises(UserError, match="only checkpoints with ema_decay have averages"):
            run_experiment(experiment(name, 0.5 - decay))
        capsys.readouterr()
        run_experiment(experiment(name, 0.5 - decay, allow_changes=("optimizer",)))
        shown = capsys.readouterr().out
        assert ("moments start at zero" in shown) is (name == "off")
        shutil.rmtree(tmp_path / name / "last")
    run_experiment(experiment("plain", 0.0))
    step = "checkpoints/step-2"
    check_tensors(tmp_path / "on" / step, tmp_path / "plain" / step)


def test_new_averages_begin_with_the_weights(tiny_config, tmp_path):
    def make(directory, **settings):
        model, optimizer = AlbertPretrainer(tiny_config), LAMB(0.1, **settings)
        optimizer.build(model.trainable_variables)
        state = TrainingState(str(directory), model, optimizer, keep=1, must_match=False)
        return model, optimizer, state

    model, optimizer, state = make(tmp_path)
    optimizer.iterations.assign(3)
    state.save()
    state.close()
    other, optimizer, state = make(tmp_path, use_ema=True)
    assert state.restore() and state.step == 3
    for average, variable, old in zip(
        optimizer.averages, other.trainable_variables, model.trainable_variables, strict=True
    ):
        np.testing.assert_array_equal(average, old)
        np.testing.assert_array_equal(variable, old)
