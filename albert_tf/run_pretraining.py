r"""Pre-trains an ALBERT on TFRecords of data_pipeline.create_pretraining_data, and evaluates it.

    python -m albert_tf.run_pretraining --preset=albert-base-v2 \
        --train_data=records/train --eval_data=records/heldout --output_dir=runs/base
"""

from __future__ import annotations

from data_pipeline.command_line import flags, run_binary  # isort: skip  First: quiet TensorFlow.

import functools
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
from albert_tf.run_pretraining_eval import (
    evaluate,
    evaluate_run,
    example_writer,
    folder_of,
    make_evaluator,
)
from albert_tf.run_pretraining_output import finish, prepare_run_folder, saved_with_model
from albert_tf.tasks import PretrainingTask
from albert_tf.training import BestModel, Hooks, make_strategy, train
from albert_tf.training.cards import print_pretraining_start
from albert_tf.training.machine import step_cost
from albert_tf.training.strategy import is_chief, wait_for_all
from albert_tf.training.supervision import run_supervised
from data_pipeline.datasets import pretraining_dataset, source_of_batch
from data_pipeline.records import explain_read_error, verify_records

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    shared_flags.define_run_flags(modes=("train_and_eval", "train", "eval", "continuous_eval"))
    shared_flags.define_model_flags()
    shared_flags.define_training_flags(
        optimizer="lamb", learning_rate=0.00176, train_batch_size=4096
    )
    shared_flags.define_device_flags()
    flags.group("Data and length of training")
    flags.DEFINE_string("train_data", None, "Folder of training records.")
    flags.DEFINE_list(
        "eval_data", [], "Folders of held-out records, at most one for each sentence objective."
    )
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
    strategy = make_strategy(FLAGS.distribution, FLAGS.tpu)
    keras.mixed_precision.set_global_policy(FLAGS.precision)
    if FLAGS.mode == "eval":
        evaluate(strategy)
    elif FLAGS.mode == "continuous_eval":
        evaluate_run(strategy)
    else:
        train_and_evaluate(strategy)


def train_and_evaluate(strategy: tf.distribute.Strategy) -> None:
    """Trains, saves the model folder, and prints the held-out figures."""
    manifest = verify_records(folder_of("train_data"))
    config = shared_flags.model_config(
        manifest["vocab_size"], manifest["max_seq_length"], FLAGS.train_data
    )
    shared_flags.check_train_batch(
        config, manifest["max_seq_length"], manifest["num_records"], FLAGS.train_data, strategy
    )
    recipe = shared_flags.scaled_recipe(
        Recipe(FLAGS.learning_rate, FLAGS.num_train_steps, FLAGS.num_warmup_steps),
        FLAGS.recipe_batch_size,
    )
    settings = shared_flags.loop_settings(recipe.num_train_steps)

    keras.utils.set_random_seed(FLAGS.seed)
    with strategy.scope():
        model = AlbertPretrainer(config)
        if FLAGS.init_checkpoint:
            formats.load_weights(model, locate(FLAGS.init_checkpoint).path)
        optimizer = shared_flags.make_optimizer(config, recipe)
    task = PretrainingTask(model, manifest["settings"]["sentence_objective"])
    stepper = shared_flags.make_stepper(task, optimizer, strategy)
    evaluator = None
    if FLAGS.mode == "train_and_eval" and FLAGS.eval_data:
        evaluator = make_evaluator(model, strategy, manifest["vocab_fingerprint"])
    if is_chief(strategy):
        prepare_run_folder(config, manifest)
        print_pretraining_start(
            model, strategy, manifest, FLAGS.train_batch_size, recipe.num_train_steps
        )
    wait_for_all(strategy)

    training_data = functools.partial(
        pretraining_dataset, FLAGS.train_data, FLAGS.train_batch_size, seed=FLAGS.seed
    )
    length, predictions = manifest["max_seq_length"], manifest["max_predictions"]
    flops = pretraining_flops_per_token(config, length, predictions)
    cost = step_cost(FLAGS.train_batch_size * length, flops, strategy)
    saved = saved_with_model(manifest)
    best = BestModel(model, os.path.join(FLAGS.output_dir, "best_model"), "loss", False, *saved)
    source = functools.partial(
        source_of_batch, FLAGS.train_data, FLAGS.train_batch_size, seed=FLAGS.seed
    )
    hooks = Hooks(best.offer, example_writer(model, manifest), source)
    try:
        metrics = train(stepper, training_data, evaluator, settings, FLAGS.output_dir, cost, hooks)
    except tf.errors.DataLossError as error:
        raise explain_read_error(FLAGS.train_data, error) from None
    if is_chief(strategy):
        finish(model, metrics, recipe.num_train_steps, saved)


if __name__ == "__main__":
    define_flags()
    run_binary(lambda: run_supervised(main, FLAGS.max_failures), user_errors=[UserError])
