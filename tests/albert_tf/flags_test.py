"""Flags as the dataclasses that they stand for."""

from __future__ import annotations

import dataclasses

import pytest
import tensorflow as tf
from absl.flags import FLAGS

from albert_tf import flags as shared_flags
from albert_tf.keras_compat import keras
from albert_tf.optimization import Recipe
from albert_tf.training import DeviceSettings, LoopSettings, OptimizerSettings, RunSettings, Stepper
from data_pipeline.command_line import flags


@pytest.fixture
def parse(new_flags):
    """(*argv) -> sets the flags that training programs share."""
    with new_flags():
        shared_flags.define_run_flags(("train_and_eval",))
        shared_flags.define_model_flags()
        shared_flags.define_training_flags("lamb", 0.001, 32)
        shared_flags.define_device_flags()
        yield lambda *argv: FLAGS(["program", "--output_dir=run", *argv])


def settings_of(recipe: Recipe) -> RunSettings:
    optimizer = shared_flags.optimizer_settings(recipe)
    return shared_flags.run_settings(optimizer, shared_flags.loop_settings(recipe))


def test_defaults_are_those_of_the_dataclasses(parse):
    parse()
    settings = settings_of(Recipe(0.001, 20, 2))
    assert settings.optimizer == OptimizerSettings("lamb", 0.001, num_warmup_steps=2)
    assert settings.loop == LoopSettings(20)
    assert settings.output_dir == "run" and settings.flags == flags.resolved()
    others = ("output_dir", "optimizer", "loop", "flags")
    for field in dataclasses.fields(settings):
        assert field.name in others or getattr(settings, field.name) == field.default, field.name
    for field in dataclasses.fields(DeviceSettings):
        assert FLAGS[field.name].value == field.default, field.name


def test_every_flag_reaches_its_field(parse):
    parse(
        *("--optimizer=adamw", "--learning_rate_power=2", "--weight_decay_rate=0.1"),
        *("--checkpoint_steps=7", "--allow_changes=optimizer,precision", "--max_bad_steps=3"),
        *("--gradient_accumulation_steps=4", "--eval_batch_size=5", "--overwrite", "--jit_compile"),
        *("--preset=albert-tiny", "--recompute"),
    )
    settings = settings_of(Recipe(0.5, 20, 2))
    assert settings.optimizer == OptimizerSettings(
        "adamw", 0.5, 2, learning_rate_power=2, weight_decay_rate=0.1
    )
    assert settings.loop == LoopSettings(
        20, checkpoint_steps=7, allow_changes=("optimizer", "precision"), max_bad_steps=3
    )
    assert (settings.gradient_accumulation_steps, settings.eval_batch_size) == (4, 5)
    assert settings.overwrite and settings.jit_compile
    start = shared_flags.initial_model()
    assert (start.preset, start.config_file, start.recompute) == ("albert-tiny", None, True)


def test_the_largest_seed_can_be_used(parse):
    parse(f"--seed={flags.INTEGER_LIMIT}")
    keras.utils.set_random_seed(FLAGS.seed)
    Stepper(None, None, tf.distribute.get_strategy(), FLAGS.seed)
    tf.random.stateless_uniform([2], [FLAGS.seed, 0])
