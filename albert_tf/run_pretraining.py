r"""Pre-trains an ALBERT on TFRecords of data_pipeline.create_pretraining_data, and evaluates it.

    python -m albert_tf.run_pretraining --preset=albert-base-v2 \
        --train_data=records/train --eval_data=records/heldout --output_dir=runs/base
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import contextlib
import os

import tensorflow as tf

from albert_tf import flags as shared_flags
from albert_tf.checkpoints import formats
from albert_tf.costs import pretraining_flops_per_token
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from albert_tf.optimization import Recipe
from albert_tf.pretrained import locate
from albert_tf.run_pretraining_data import define_data_flags, open_training_data
from albert_tf.run_pretraining_eval import (
    evaluate,
    evaluate_run,
    example_writer,
    make_evaluator,
)
from albert_tf.run_pretraining_output import finish, prepare_run_folder, saved_with_model
from albert_tf.tasks import PretrainingTask
from albert_tf.training import BestModel, Hooks, train
from albert_tf.training.checkpoint_files import check_steps
from albert_tf.training.devices import is_packed, prepare_devices
from albert_tf.training.report.cards import print_pretraining_start
from albert_tf.training.report.machine import step_cost
from albert_tf.training.strategy import is_chief, wait_for_all
from albert_tf.training.supervision import run_supervised

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    shared_flags.define_run_flags(modes=("train_and_eval", "train", "eval", "continuous_eval"))
    shared_flags.define_model_flags()
    shared_flags.define_training_flags(
        optimizer="lamb", learning_rate=0.00176, train_batch_size=4096
    )
    shared_flags.define_device_flags()
    flags.group("Data")
    define_data_flags()
    flags.group("Length of training")
    flags.DEFINE_integer("num_train_steps", 125000, "Updates in all.", lower_bound=1)
    flags.DEFINE_integer("num_warmup_steps", 3125, "Updates until the full rate.")
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
    strategy = prepare_devices()
    if FLAGS.mode == "eval":
        evaluate(strategy)
    elif FLAGS.mode == "continuous_eval":
        evaluate_run(strategy, scaled_recipe().num_train_steps)
    else:
        train_and_evaluate(strategy)


def scaled_recipe() -> Recipe:
    """Rate, updates and warm-up for --train_batch_size."""
    recipe = Recipe(FLAGS.learning_rate, FLAGS.num_train_steps, FLAGS.num_warmup_steps)
    return shared_flags.scaled_recipe(recipe, FLAGS.recipe_batch_size)


def train_and_evaluate(strategy: tf.distribute.Strategy) -> None:
    """Trains, saves the model folder, and prints the held-out figures."""
    data = open_training_data()
    manifest = data.manifest
    config = shared_flags.model_config(
        manifest["vocab_size"], manifest["max_seq_length"], data.name
    )
    shared_flags.check_train_batch(
        config, manifest["max_seq_length"], manifest["num_records"], data.name, strategy
    )
    recipe = scaled_recipe()
    settings = shared_flags.loop_settings(recipe.num_train_steps)
    if not FLAGS.overwrite:
        check_steps(FLAGS.output_dir, recipe.num_train_steps)

    keras.utils.set_random_seed(FLAGS.seed)
    with strategy.scope():
        model = AlbertPretrainer(config, is_packed())
        if FLAGS.init_checkpoint:
            formats.load_weights(model, locate(FLAGS.init_checkpoint).path)
        optimizer = shared_flags.make_optimizer(config, recipe)
    task = PretrainingTask(model, manifest["settings"]["sentence_objective"])
    stepper = shared_flags.make_stepper(task, optimizer, strategy)
    evaluator = None
    if FLAGS.mode == "train_and_eval" and FLAGS.eval_data:
        evaluator = make_evaluator(model, strategy, manifest["vocab_fingerprint"])
    lock = contextlib.nullcontext()
    if is_chief(strategy):
        lock = prepare_run_folder(config, data.fixed)
        print_pretraining_start(
            model, strategy, manifest, FLAGS.train_batch_size, recipe.num_train_steps
        )
    wait_for_all(strategy)

    length, predictions = manifest["max_seq_length"], manifest["max_predictions"]
    flops = pretraining_flops_per_token(config, length, predictions)
    cost = step_cost(FLAGS.train_batch_size * length, flops, strategy)
    saved = saved_with_model(manifest)
    best = BestModel(model, os.path.join(FLAGS.output_dir, "best_model"), "loss", False, *saved)
    hooks = Hooks(best.offer, example_writer(model, manifest), data.describe_batch)
    run_dir = FLAGS.output_dir
    with lock:
        try:
            metrics = train(stepper, data.batches, evaluator, settings, run_dir, cost, hooks)
        except tf.errors.OpError as error:
            raise data.explain(error) from None
        if is_chief(strategy):
            finish(model, metrics, recipe.num_train_steps, saved)


if __name__ == "__main__":
    define_flags()
    run_binary(
        lambda: run_supervised(main, FLAGS.max_failures, FLAGS.output_dir), user_errors=[UserError]
    )
