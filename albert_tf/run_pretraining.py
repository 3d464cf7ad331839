"""Pre-trains an ALBERT on TFRecords of data_pipeline.create_pretraining_data, and evaluates it.

    python -m albert_tf.run_pretraining --preset=albert-base-v2 \
        --train_data=records/train --eval_data=records/heldout --output_dir=runs/base
"""

from __future__ import annotations

import functools
import os

import tensorflow as tf
from absl import flags

from albert_tf import flags as shared_flags
from albert_tf.checkpoints import formats, native
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from albert_tf.pretrained import locate
from albert_tf.tasks import PretrainingTask
from albert_tf.training import Stepper, make_strategy, run_folder, train
from albert_tf.training.cards import print_comparison, print_pretraining_start
from data_pipeline.datasets import pretraining_dataset
from data_pipeline.errors import run_binary
from data_pipeline.record_statistics import pretraining_baselines
from data_pipeline.records import explain_read_error, read_manifest, verify_records

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Flags of this program."""
    shared_flags.define_run_flags(modes=("train_and_eval", "eval"))
    shared_flags.define_model_flags()
    shared_flags.define_training_flags(
        optimizer="lamb", learning_rate=0.00176, train_batch_size=4096
    )
    shared_flags.define_device_flags()
    flags.DEFINE_string("train_data", None, "Folder of training records.")
    flags.DEFINE_string("eval_data", None, "Folder of held-out records.")
    flags.DEFINE_integer("num_train_steps", 125000, "Updates in all.", lower_bound=1)
    flags.DEFINE_integer("num_warmup_steps", 3125, "Updates until the full rate.", lower_bound=0)


def main() -> None:
    strategy = make_strategy(FLAGS.distribution, FLAGS.tpu)
    keras.mixed_precision.set_global_policy(FLAGS.precision)
    if FLAGS.mode == "eval":
        evaluate(strategy)
    else:
        train_and_evaluate(strategy)


def train_and_evaluate(strategy: tf.distribute.Strategy) -> None:
    """Trains, saves the model folder, and prints the held-out figures."""
    manifest = verify_records(folder_of("train_data"))
    config = shared_flags.model_config(
        manifest["vocab_size"], manifest["max_seq_length"], FLAGS.train_data
    )
    evaluation_data = held_out_data(manifest) if FLAGS.eval_data else None
    settings = shared_flags.loop_settings(FLAGS.num_train_steps)

    keras.utils.set_random_seed(FLAGS.seed)
    with strategy.scope():
        model = AlbertPretrainer(config)
        if FLAGS.init_checkpoint:
            formats.load_weights(model, locate(FLAGS.init_checkpoint).path)
        optimizer = shared_flags.make_optimizer(FLAGS.num_train_steps, FLAGS.num_warmup_steps)
    run_folder.prepare(FLAGS.output_dir, config, shared_flags.flag_values(), FLAGS.overwrite)
    print_pretraining_start(
        model, strategy, manifest, FLAGS.train_batch_size, FLAGS.num_train_steps
    )

    training_data = functools.partial(
        pretraining_dataset, FLAGS.train_data, FLAGS.train_batch_size, seed=FLAGS.seed
    )
    task = PretrainingTask(model, manifest["settings"]["sentence_objective"])
    stepper = Stepper(task, optimizer, strategy, FLAGS.seed)
    tokens_per_step = FLAGS.train_batch_size * manifest["max_seq_length"]
    try:
        metrics = train(
            stepper, training_data, evaluation_data, settings, FLAGS.output_dir, tokens_per_step
        )
    except tf.errors.DataLossError as error:
        raise explain_read_error(FLAGS.train_data, error) from None

    model_dir = os.path.join(FLAGS.output_dir, "model")
    metadata = {
        "max_seq_length": manifest["max_seq_length"],
        "vocab_fingerprint": manifest["vocab_fingerprint"],
        "num_train_steps": FLAGS.num_train_steps,
        "metrics": metrics,
    }
    vocab_file = os.path.join(FLAGS.train_data, manifest["vocab_file"])
    native.save(model, model_dir, metadata, vocab_file, manifest["tokenizer"])
    if metrics:
        print_results(metrics, manifest)
    print(f"Model: {model_dir}\nNext: python -m albert_tf.run_classifier "
          f"--init_checkpoint={model_dir} --train_file=train.tsv --dev_file=dev.tsv "
          f"--output_dir=...\n  or: python -m export.run_export --model_dir={model_dir} "
          "--task=masked_lm --output_dir=...")  # fmt: skip


def folder_of(flag: str) -> str:
    """The folder of records that a flag names."""
    if not FLAGS[flag].value:
        raise UserError(
            f"--{flag} is missing: a folder of records that create_pretraining_data wrote."
        )
    return FLAGS[flag].value


def held_out_data(made_with: dict) -> tf.data.Dataset:
    """Held-out records; `made_with`, a manifest or model.json, names their vocabulary."""
    fingerprint = made_with["vocab_fingerprint"]
    return pretraining_dataset(
        FLAGS.eval_data, FLAGS.eval_batch_size, training=False, vocab_fingerprint=fingerprint
    )


def evaluate(strategy: tf.distribute.Strategy) -> None:
    """Evaluates the model of a finished run on the objectives of the held-out records."""
    manifest = read_manifest(folder_of("eval_data"))
    folder = FLAGS.init_checkpoint or os.path.join(FLAGS.output_dir, "model")
    metadata = native.read_metadata(folder)
    with strategy.scope():
        model = native.load_model(folder)
    if not isinstance(model, AlbertPretrainer):
        raise UserError(f"{folder} holds a model for {metadata['task']}, not for pretraining.")
    task = PretrainingTask(model, manifest["settings"]["sentence_objective"])
    metrics = Stepper(task, None, strategy).evaluate(held_out_data(metadata))
    print_results(metrics, read_manifest(FLAGS.train_data) if FLAGS.train_data else manifest)


def print_results(metrics: dict[str, float], train_manifest: dict) -> None:
    """The held-out figures beside what a guess without a model would reach."""
    baselines = pretraining_baselines(train_manifest, read_manifest(FLAGS.eval_data))
    rows = {name: (metrics[name], *baselines[name]) for name in baselines if name in metrics}
    print_comparison(f"Held-out evaluation on {FLAGS.eval_data}", rows)


if __name__ == "__main__":
    define_flags()
    run_binary(main, user_errors=[UserError])
