"""The flags that training programs share, and the settings and devices made of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from albert_tf.errors import UserError
from albert_tf.optimization import Recipe
from albert_tf.training import (
    DeviceSettings,
    InitialModel,
    LoopSettings,
    OptimizerSettings,
    RunSettings,
)
from albert_tf.training.devices import Devices, prepare_devices
from albert_tf.training.settings import MAX_BATCH_SIZE
from data_pipeline.command_line import flags
from data_pipeline.command_line.settings import define, read

FLAGS = flags.FLAGS


def define_run_flags(modes: tuple[str, ...]) -> None:
    """Flags of the run: its mode, its folder, its seed."""
    flags.group("Run")
    flags.DEFINE_enum("mode", modes[0], modes, "Work to do with the model.")
    define(RunSettings, "Run")
    flags.DEFINE_integer(
        "seed", 0, "Seed of the initial weights, the order of the data and dropout."
    )


def define_training_flags(
    train_batch_size: int,
    *,
    without: Collection[str] = (),
    hidden: Collection[str] = (),
    **defaults: Any,
) -> None:
    """Flags of the batch, the optimizer, the loop and the devices.

    Args:
      train_batch_size: default of the program.
      without, hidden, defaults: see `define`.
    """
    flags.group("Training")
    flags.DEFINE_integer(
        "train_batch_size",
        train_batch_size,
        "Number of sequences per update, over all replicas.",
        lower_bound=1,
        upper_bound=MAX_BATCH_SIZE,
    )
    define(OptimizerSettings, "Training", hidden=hidden, **defaults)
    define(LoopSettings, "Training", without=without, **defaults)
    flags.DEFINE_integer(
        "max_failures", 0, "Number of times that a run is restarted after it dies.", expert=True
    )
    define(DeviceSettings, "Devices")


def prepare_flagged_devices() -> Devices:
    """The devices that the flags select; replaces `auto` in --fast and --packed by the choice."""
    devices = prepare_devices(read(DeviceSettings))
    FLAGS.fast = "on" if devices.is_fast else "off"
    FLAGS.packed = "true" if devices.packed else "false"
    return devices


def chosen_vocabulary() -> str:
    """--vocab_file, or else the vocabulary next to the weights of --init_checkpoint."""
    return read(InitialModel).chosen_vocabulary(FLAGS.vocab_file)


# A value of a flag, and the flags that it makes useless.
_USELESS_WITH = (
    ("schedule", "wsd", ("learning_rate_power", "decay_after_warmup")),
    ("schedule", "polynomial", ("decay_share",)),
    ("optimizer", "tfa_lamb", ("bias_correction", "muon_momentum")),
    ("optimizer", "lamb", ("muon_momentum",)),
    ("optimizer", "adamw", ("muon_momentum",)),
)


def optimizer_settings(recipe: Recipe) -> OptimizerSettings:
    """The optimizer settings from the flags, with the learning rate and warm-up of a recipe.

    Raises:
      UserError: a flag is given that the schedule or the optimizer does not use.
    """
    for flag, value, others in _USELESS_WITH:
        given = [each for each in others if FLAGS[each].present]
        if given and FLAGS[flag].value == value:
            raise UserError(f"--{given[0]} has no effect with --{flag}={value}. Leave it out.")
    return read(
        OptimizerSettings,
        learning_rate=recipe.learning_rate,
        num_warmup_steps=recipe.num_warmup_steps,
    )


def run_settings(recipe: Recipe) -> RunSettings:
    """The run settings from the flags, with the learning rate, number of updates and warm-up of a
    recipe. They include all flags, to be recorded.
    """
    return read(
        RunSettings,
        optimizer=optimizer_settings(recipe),
        loop=read(LoopSettings, num_train_steps=recipe.num_train_steps),
        flags=flags.resolved(),
    )
