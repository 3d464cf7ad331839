"""Flags as the dataclasses that they stand for."""

import dataclasses

import pytest
import tensorflow as tf
from absl import flags as absl_flags
from absl.flags import FLAGS

from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.optimization import Recipe
from albert_tf.training import (
    DeviceSettings,
    InitialModel,
    LoopSettings,
    OptimizerSettings,
    Stepper,
)
from albert_tf.training import flags as shared_flags
from albert_tf.training.devices import Devices
from data_pipeline.command_line import flags
from data_pipeline.command_line.settings import define, read
from data_pipeline.settings import INTEGER_LIMIT, settings_of

DEFAULTS = {
    "optimizer": "lamb", "learning_rate": 0.001, "num_train_steps": 100, "num_warmup_steps": 10,
}  # fmt: skip


@pytest.fixture
def parse(new_flags):
    """(*argv) -> sets the flags that training programs share."""
    with new_flags():
        shared_flags.define_run_flags(("train_and_eval",))
        define(InitialModel, "Model")
        shared_flags.define_training_flags(32, **DEFAULTS)
        yield lambda *argv: FLAGS(["program", "--output_dir=run", *argv])


def test_defaults_are_those_of_the_dataclasses(parse):
    parse()
    settings = shared_flags.run_settings(Recipe(0.001, 20, 2))
    assert settings.optimizer == OptimizerSettings("lamb", 0.001, num_warmup_steps=2)
    assert settings.loop == LoopSettings(20)
    assert settings.output_dir == "run" and settings.flags == flags.resolved()
    others = ("output_dir", "optimizer", "loop", "flags")
    for field in dataclasses.fields(settings):
        assert field.name in others or getattr(settings, field.name) == field.default, field.name
    for setting in settings_of(DeviceSettings):
        assert FLAGS[setting.name].value == setting.default, setting.name


def test_every_flag_reaches_its_field(parse):
    parse(
        *("--optimizer=adamw", "--learning_rate_power=2", "--weight_decay_rate=0.1"),
        *("--checkpoint_steps=7", "--allow_changes=optimizer,precision", "--max_bad_steps=3"),
        *("--gradient_accumulation_steps=4", "--eval_batch_size=5", "--overwrite", "--jit_compile"),
        *("--preset=albert-tiny", "--recompute"),
    )
    settings = shared_flags.run_settings(Recipe(0.5, 20, 2))
    assert settings.optimizer == OptimizerSettings(
        "adamw", 0.5, 2, learning_rate_power=2, weight_decay_rate=0.1
    )
    assert settings.loop == LoopSettings(
        20, checkpoint_steps=7, allow_changes=("optimizer", "precision"), max_bad_steps=3
    )
    assert (settings.gradient_accumulation_steps, settings.eval_batch_size) == (4, 5)
    assert settings.overwrite and settings.jit_compile
    start = read(InitialModel)
    assert (start.preset, start.config_file, start.recompute) == ("albert-tiny", None, True)


def test_the_largest_seed_can_be_used(parse):
    parse(f"--seed={INTEGER_LIMIT}")
    keras.utils.set_random_seed(FLAGS.seed)
    Stepper(None, None, tf.distribute.get_strategy(), FLAGS.seed)
    tf.random.stateless_uniform([2], [FLAGS.seed, 0])


@pytest.mark.parametrize(
    ("name", "allowed", "refused"),
    [
        ("train_batch_size", [1, 2**20], [0, 2**20 + 1]),
        ("eval_batch_size", [1, 2**20], [0, 2**20 + 1]),
        ("gradient_accumulation_steps", [1], [0]),
        ("steps_per_loop", [1], [0]),
        ("checkpoint_steps", [1], [0]),
        ("keep_checkpoints", [1], [0]),
        ("eval_steps", [0], [-1]),
        ("max_bad_steps", [0], [-1]),
        ("max_failures", [0], [-1]),
        ("learning_rate_power", [0, 100], [-1, 101]),
        ("layerwise_learning_rate_decay", [0.1, 1], [0, 1.1]),
        ("allow_changes", ["", "optimizer,init_checkpoint"], ["optimizer,seed"]),
        ("fast", ["auto", "on", "off"], ["true"]),
        ("packed", ["auto", "true", "false"], ["on"]),
        ("optimizer", ["lamb", "adamw", "muon", "tfa_lamb"], ["adam"]),
        ("mode", ["train_and_eval"], ["eval"]),
    ],
)
def test_values_that_flags_allow(parse, name, allowed, refused):
    for value in allowed:
        parse(f"--{name}={value}")
    for value in refused:
        with pytest.raises(absl_flags.IllegalFlagValueError):
            parse(f"--{name}={value}")


def test_defaults_of_a_binary(parse):
    parse()
    found = (FLAGS.optimizer, FLAGS.learning_rate, FLAGS.train_batch_size, FLAGS.mode, FLAGS.seed)
    assert found == ("lamb", 0.001, 32, "train_and_eval", 0)
    assert (FLAGS.max_failures, FLAGS.allow_changes, FLAGS.tpu) == (0, [], None)


def test_devices_become_what_auto_means(parse, monkeypatch):
    parse("--distribution=one_device", "--precision=mixed_bfloat16")
    asked = []

    def prepare_devices(settings):
        asked.append(settings)
        return Devices(None, packed=len(asked) == 1, is_fast=len(asked) == 2)

    monkeypatch.setattr(shared_flags, "prepare_devices", prepare_devices)
    shared_flags.prepare_flagged_devices()
    assert (FLAGS.fast, FLAGS.packed) == ("off", "true")
    shared_flags.prepare_flagged_devices()
    assert (FLAGS.fast, FLAGS.packed) == ("on", "false")
    assert asked[0] == DeviceSettings(distribution="one_device", precision="mixed_bfloat16")


def test_the_vocabulary(parse):
    flags.DEFINE_string("vocab_file", None, "The vocabulary.")
    parse("--vocab_file=mine.model")
    assert shared_flags.chosen_vocabulary() == "mine.model"


@pytest.mark.parametrize(
    "given",
    [
        ("--schedule=wsd", "--learning_rate_power=2"),
        ("--schedule=wsd", "--decay_after_warmup"),
        ("--schedule=polynomial", "--decay_share=0.5"),
        ("--schedule=polynomial", "--decay_share=0.2"),  # The default, by hand.
        ("--optimizer=tfa_lamb", "--bias_correction"),
        ("--optimizer=adamw", "--muon_momentum=0.9"),
    ],
)
def test_flags_that_would_do_nothing(parse, given):
    parse(*given)
    message = f"{given[1].partition('=')[0]} has no effect with {given[0]}"
    with pytest.raises(UserError, match=message):
        shared_flags.optimizer_settings(Recipe(0.1, 10, 1))
