"""Pre-trains an ALBERT on TFRecords of data_pipeline.create_pretraining_data, and evaluates it on
held-out ones.

    python -m albert_tf.run_pretraining --preset=albert-base-v2 \
        --train_data=records/train --eval_data=records/heldout --output_dir=runs/base
"""

from __future__ import annotations

import math
import os

import tensorflow as tf
from absl import flags

from albert_tf import flags as shared_flags
from albert_tf.checkpoints import native
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.models import AlbertPretrainer
from albert_tf.tasks import PretrainingTask
from albert_tf.training import run_folder
from albert_tf.training.cards import print_pretraining_start
from albert_tf.training.loop import train
from albert_tf.training.steps import Stepper
from albert_tf.training.strategy import make_strategy
from data_pipeline.datasets import pretraining_dataset
from data_pipeline.errors import run_binary
from data_pipeline.record_statistics import unigram_baseline
from data_pipeline.records import explain_read_error, read_manifest

FLAGS = flags.FLAGS

shared_flags.define_run_flags(modes=("train_and_eval", "eval"))
shared_flags.define_model_flags()
shared_flags.define_training_flags(optimizer="lamb", learning_rate=0.00176, train_batch_size=4096)
shared_flags.define_device_flags()
flags.DEFINE_string("train_data", None, "Folder of training records.")
flags.DEFINE_string("eval_data", None, "Folder of held-out records.")
flags.DEFINE_integer("num_train_steps", 125000, "Updates in all.", lower_bound=1)
flags.DEFINE_integer(
    "num_warmup_steps", 3125, "Updates until the highest learning rate.", lower_bound=0
)


def main() -> None:
    strategy = make_strategy(FLAGS.distribution, FLAGS.tpu)
    keras.mixed_precision.set_global_policy(FLAGS.precision)
    if FLAGS.mode == "eval":
        evaluate(strategy)
        return
    if not FLAGS.train_data:
        raise UserError(
            "--train_data is missing: the folder of records that create_pretraining_data wrote."
        )
    manifest = read_manifest(FLAGS.train_data)
    config = read_config(manifest)
    settings = shared_flags.loop_settings(FLAGS.num_train_steps)
    evaluation_data = held_out_data(manifest) if FLAGS.eval_data else None
    run_folder.prepare(FLAGS.output_dir, config, shared_flags.flag_values(), FLAGS.overwrite)
    keras.utils.set_random_seed(FLAGS.seed)
    with strategy.scope():
        model = AlbertPretrainer(config)
        if FLAGS.init_checkpoint:
            native.load_weights(model, FLAGS.init_checkpoint)
        optimizer = shared_flags.make_optimizer(FLAGS.num_train_steps, FLAGS.num_warmup_steps)
    print_pretraining_start(
        model, strategy, manifest, FLAGS.train_batch_size, FLAGS.num_train_steps
    )

    def training_data(start_step: int) -> tf.data.Dataset:
        return pretraining_dataset(
            FLAGS.train_data,
            FLAGS.train_batch_size,
            seed=FLAGS.seed,
            training=True,
            start_step=start_step,
        )

    stepper = Stepper(PretrainingTask(model), optimizer, strategy, FLAGS.seed)
    tokens_per_step = FLAGS.train_batch_size * manifest["max_seq_length"]
    try:
        metrics = train(
            stepper, training_data, evaluation_data, settings, FLAGS.output_dir, tokens_per_step
        )
    except tf.errors.DataLossError as error:
        raise explain_read_error(FLAGS.train_data, error) from None
    model_dir = os.path.join(FLAGS.output_dir, "model")
    vocab_file = os.path.join(FLAGS.train_data, manifest["vocab_file"])
    native.save(
        model, model_dir, model_metadata(manifest, metrics), vocab_file, manifest["tokenizer"]
    )
    if metrics:
        print_results(metrics, manifest)
    print(
        f"Model: {model_dir}\nNext: python -m albert_tf.run_classifier "
        f"--init_checkpoint={model_dir} "
        "--train_file=train.tsv --dev_file=dev.tsv --output_dir=...\n"
        f"  or: python -m export.run_export --model_dir={model_dir} --task=masked_lm "
        "--output_dir=..."
    )


def read_config(manifest: dict) -> AlbertConfig:
    """The model's configuration, checked against the records."""
    folder = FLAGS.init_checkpoint
    inherited = native.read_config(folder) if folder and tf.io.gfile.isdir(folder) else None
    config = shared_flags.model_config(inherited, manifest["vocab_size"])
    shared_flags.check_lengths(
        config, manifest["max_seq_length"], manifest["vocab_size"], FLAGS.train_data
    )
    return config


def held_out_data(manifest: dict) -> tf.data.Dataset:
    """Held-out records, which must have been made with the vocabulary of `manifest`."""
    return pretraining_dataset(
        FLAGS.eval_data,
        FLAGS.eval_batch_size,
        training=False,
        vocab_fingerprint=manifest["vocab_fingerprint"],
    )


def model_metadata(manifest: dict, metrics: dict[str, float]) -> dict:
    """What model.json says of where the model comes from."""
    return {
        "max_seq_length": manifest["max_seq_length"],
        "vocab_fingerprint": manifest["vocab_fingerprint"],
        "num_train_steps": FLAGS.num_train_steps,
        "metrics": metrics,
    }


def evaluate(strategy: tf.distribute.Strategy) -> None:
    """Evaluates the model of a finished run."""
    if not FLAGS.eval_data:
        raise UserError("--mode=eval needs --eval_data: a folder of held-out records.")
    folder = FLAGS.init_checkpoint or os.path.join(FLAGS.output_dir, "model")
    metadata = native.read_metadata(folder)
    with strategy.scope():
        model = native.load_model(folder)
    if not isinstance(model, AlbertPretrainer):
        raise UserError(f"{folder} holds a model for {metadata['task']}, not for pretraining.")
    stepper = Stepper(PretrainingTask(model), None, strategy)
    print_results(
        stepper.evaluate(held_out_data(metadata)),
        read_manifest(FLAGS.train_data or FLAGS.eval_data),
    )


def print_results(metrics: dict[str, float], train_manifest: dict) -> None:
    """The held-out figures beside what a guess without a model would reach."""
    eval_manifest = read_manifest(FLAGS.eval_data)
    unigram = unigram_baseline(train_manifest, eval_manifest)
    print(f"Held-out evaluation ({FLAGS.eval_data})        model   baseline")
    for name, baseline, kind in (
        ("masked_lm_accuracy", unigram["accuracy"], "most frequent piece"),
        ("masked_lm_loss", unigram["cross_entropy"], "unigram distribution"),
        (
            "sentence_order_accuracy",
            eval_manifest["statistics"]["majority_order_accuracy"],
            "most frequent label",
        ),
        ("sentence_order_loss", math.log(2), "ln 2"),
    ):
        print(f"  {name:<26} {metrics[name]:10.4f} {baseline:10.4f}  ({kind})")


if __name__ == "__main__":
    run_binary(main, user_errors=[UserError])
