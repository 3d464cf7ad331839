r"""Pre-trains an ALBERT on TFRecords of data_pipeline.create_pretraining_data, and evaluates it.

    python -m albert_tf.run_pretraining --preset=albert-base-v2 \
        --train_data=records/train --eval_data=records/heldout --output_dir=runs/base
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import os
from typing import Any

from albert_tf import flags as shared_flags
from albert_tf.checkpoints import native
from albert_tf.keras_compat import keras
from albert_tf.pretraining import evaluate_model, evaluate_run, pretrain
from albert_tf.training.devices import Devices
from albert_tf.training.supervision import run_supervised
from data_pipeline.records.record_folder import read_manifest

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    shared_flags.define_run_flags(modes=("train_and_eval", "train", "eval", "continuous_eval"))
    shared_flags.define_model_flags()
    shared_flags.define_objective_flags()
    shared_flags.define_training_flags(
        optimizer="lamb", learning_rate=0.00176, train_batch_size=4096
    )
    shared_flags.define_device_flags()
    shared_flags.define_pretraining_data_flags()
    flags.group("Length of training")
    flags.DEFINE_integer("num_train_steps", 125000, "Updates in all.", lower_bound=1)
    flags.DEFINE_integer("num_warmup_steps", 3125, "Updates until the full rate.")
    flags.DEFINE_float(
        "max_minutes",
        0.0,
        "Minutes of training over all starts; with --schedule=wsd the decay begins in time to be "
        "over with them, if --num_train_steps would take longer. 0: no limit.",
        upper_bound=1e6,
    )
    flags.DEFINE_bool(
        "eval_first",
        False,
        "Evaluate before the first update, too: where --init_checkpoint begins.",
    )
    flags.DEFINE_integer(
        "recipe_batch_size",
        0,
        "Batch size that rate, updates and warm-up are meant for; they are scaled to "
        "--train_batch_size by the square root rule. 0: nothing is scaled.",
        upper_bound=shared_flags.MAX_BATCH_SIZE,
    )
    flags.DEFINE_float(
        "eval_timeout",
        3600.0,
        "Seconds for which --mode=continuous_eval waits for a checkpoint.",
        upper_bound=1e7,
    )


def main() -> None:
    devices = shared_flags.prepare_flagged_devices()
    if FLAGS.mode == "eval":
        held_out = shared_flags.held_out()
        model = FLAGS.init_checkpoint or os.path.join(FLAGS.output_dir, native.RUN_MODEL)
        if not FLAGS.init_checkpoint:
            native.read_metadata(model)  # An error where the run has no model.
        evaluate_model(model, held_out, devices, train_manifest())
    elif FLAGS.mode == "continuous_eval":
        evaluate_run(
            FLAGS.output_dir,
            shared_flags.held_out(),
            devices,
            shared_flags.pretraining_recipe().num_train_steps,
            FLAGS.eval_timeout,
            train_manifest(),
        )
    else:
        train(devices)


def train(devices: Devices) -> None:
    """Trains, saves the model folder, and prints the held-out figures."""
    data = shared_flags.pretraining_data()
    start = shared_flags.initial_model()
    config = start.config(data.vocab_size, data.max_seq_length, data.name)
    recipe = shared_flags.pretraining_recipe()
    optimizer = shared_flags.optimizer_settings(recipe)
    loop = shared_flags.loop_settings(
        recipe, max_minutes=FLAGS.max_minutes, eval_first=FLAGS.eval_first
    )

    keras.utils.set_random_seed(FLAGS.seed)
    with devices.strategy.scope():
        model = shared_flags.pretraining_model(config, devices.packed)
        start.load_start(getattr(model, "detector", model))
    eval_data = FLAGS.eval_data if FLAGS.mode == "train_and_eval" else ()
    pretrain(model, data, shared_flags.run_settings(optimizer, loop), eval_data)


def train_manifest() -> dict[str, Any] | None:
    """The manifest of --train_data, whose counts baselines need; None without records."""
    return read_manifest(FLAGS.train_data) if FLAGS.train_data else None


if __name__ == "__main__":
    define_flags()
    run_binary(lambda: run_supervised(main, FLAGS.max_failures, FLAGS.output_dir))
