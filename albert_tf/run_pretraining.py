r"""Pre-trains an ALBERT on TFRecords of data_pipeline.create_pretraining_data, and evaluates it.

    python -m albert_tf.run_pretraining --preset=albert-base-v2 \
        --train_data=records/train --eval_data=records/heldout --output_dir=runs/base
"""

from __future__ import annotations

import os
from typing import Any

from albert_tf.checkpoints import native
from albert_tf.distillation.teacher import Distillation
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.pretraining import evaluate_model, evaluate_run, pretrain
from albert_tf.pretraining import flags as pretraining_flags
from albert_tf.pretraining.objectives import objective_of
from albert_tf.training import InitialModel
from albert_tf.training import flags as shared_flags
from albert_tf.training.devices import Devices
from albert_tf.training.supervision import run_supervised
from data_pipeline.command_line import flags, run_binary
from data_pipeline.command_line.settings import define, read
from data_pipeline.files import atomic_folders, storage
from data_pipeline.records.record_folder import read_manifest

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    shared_flags.define_run_flags(modes=("train_and_eval", "train", "eval", "continuous_eval"))
    define(InitialModel, "Model")
    pretraining_flags.define_data_flags()
    pretraining_flags.define_objective_flags()
    define(Distillation, "Distillation")
    pretraining_flags.define_recipe_flags()
    shared_flags.define_training_flags(
        train_batch_size=4096, optimizer="lamb", learning_rate=0.00176, num_train_steps=125000
    )
    flags.DEFINE_string(
        "batch_size_schedule",
        None,
        "Batch sizes that change during training, as SIZE@STEP,SIZE@STEP,..., instead of "
        "--train_batch_size: SIZE sequences per update from STEP on; the first STEP is 0.",
        expert=True,
    )
    flags.DEFINE_float(
        "eval_timeout",
        3600.0,
        "Seconds for which --mode=continuous_eval waits for a checkpoint.",
        upper_bound=1e7,
        expert=True,
    )


def main() -> None:
    pretraining_flags.choose_sizes()
    if FLAGS.repeat_positions and "eval" in FLAGS.mode and "train" not in FLAGS.mode:
        raise UserError(
            f"--repeat_positions={FLAGS.repeat_positions} applies only when training starts, and "
            f"--mode={FLAGS.mode} does not train. Leave it out."
        )
    devices = shared_flags.prepare_flagged_devices()
    if FLAGS.mode == "eval":
        held_out = pretraining_flags.held_out()
        model = FLAGS.init_checkpoint or os.path.join(FLAGS.output_dir, native.RUN_MODEL)
        if not FLAGS.init_checkpoint and not storage.exists(atomic_folders.existing(model)):
            raise UserError(
                f"--output_dir={FLAGS.output_dir} has no finished model. Name one by "
                "--init_checkpoint, such as the run's best_model, or use --mode=continuous_eval."
            )
        evaluate_model(model, held_out, devices, train_manifest())
    elif FLAGS.mode == "continuous_eval":
        evaluate_run(
            FLAGS.output_dir,
            pretraining_flags.held_out(),
            devices,
            pretraining_flags.recipe().num_train_steps,
            FLAGS.eval_timeout,
            train_manifest(),
        )
    else:
        train(devices)


def train(devices: Devices) -> None:
    """Trains, saves the model folder, and prints the held-out figures."""
    data, distillation = pretraining_flags.data(), read(Distillation)
    start = read(InitialModel)
    config = start.config(data.vocab_size, data.max_seq_length, data.name)
    settings = shared_flags.run_settings(pretraining_flags.recipe())

    # Seed before creating the model, which draws its initial weights. Create it in the strategy's
    # scope, which places its variables.
    keras.utils.set_random_seed(FLAGS.seed)
    with devices.strategy.scope():
        model = pretraining_flags.model(config, devices.packed)
        # Of a generator and a detector, only the detector is saved and initialized from weights.
        start.load_start(objective_of(model).kept)
    eval_data = FLAGS.eval_data if FLAGS.mode == "train_and_eval" else ()
    if FLAGS.mode == "train_and_eval" and not eval_data and (FLAGS.eval_steps or FLAGS.eval_first):
        print("--eval_data is not given: nothing is evaluated, and no best_model is saved.")
    pretrain(model, data, settings, eval_data, distillation)


def train_manifest() -> dict[str, Any] | None:
    """The manifest of --train_data, with word counts for baselines; None without records."""
    return read_manifest(FLAGS.train_data) if FLAGS.train_data else None


if __name__ == "__main__":
    define_flags()
    run_binary(lambda: run_supervised(main, FLAGS.max_failures, FLAGS.output_dir))
