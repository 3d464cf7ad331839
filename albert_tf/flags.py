"""Flags that binaries share, and what they stand for."""

from __future__ import annotations

from typing import Any

from absl import flags

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.optimization import LAMB, AdamW, WarmupPolynomialDecay
from albert_tf.presets import PRESETS, get_preset
from albert_tf.pretrained import locate
from albert_tf.training import DISTRIBUTIONS, LoopSettings

FLAGS = flags.FLAGS

OPTIMIZERS = {"lamb": LAMB, "adamw": AdamW}
PRECISIONS = ("float32", "mixed_bfloat16")


def define_model_flags() -> None:
    """Which model."""
    flags.DEFINE_string("preset", None, f"Architecture by name: {', '.join(PRESETS)}.")
    flags.DEFINE_string(
        "config_file", None, "Architecture from an albert_config.json, instead of --preset."
    )
    flags.DEFINE_string(
        "init_checkpoint",
        None,
        "Weights to start from: a model folder, a Hugging Face folder, the prefix of a "
        "google-research checkpoint, or the name of a published model, which is downloaded.",
    )


def define_run_flags(modes: tuple[str, ...]) -> None:
    """What to do, and where the results go."""
    flags.DEFINE_enum("mode", modes[0], modes, "What to do.")
    flags.DEFINE_string(
        "output_dir", None, "Folder of the run; a run found there is continued.", required=True
    )
    flags.DEFINE_bool("overwrite", False, "Delete the run found in --output_dir and start over.")
    flags.DEFINE_integer("seed", 0, "Decides initial weights, order of the data and dropout.")


def define_training_flags(optimizer: str, learning_rate: float, train_batch_size: int) -> None:
    """How to train; the arguments are the binary's defaults."""
    flags.DEFINE_enum(
        "optimizer",
        optimizer,
        list(OPTIMIZERS),
        "As in google-research/albert: no bias correction.",
    )
    flags.DEFINE_float(
        "learning_rate",
        learning_rate,
        "Highest rate, reached at the end of the warm-up.",
        lower_bound=0,
    )
    flags.DEFINE_float("weight_decay_rate", 0.01, "Decay inside the update.", lower_bound=0)
    flags.DEFINE_float(
        "global_clipnorm", 1.0, "Largest global norm of the gradient.", lower_bound=1e-9
    )
    flags.DEFINE_integer(
        "train_batch_size",
        train_batch_size,
        "Sequences per update, over all replicas.",
        lower_bound=1,
    )
    flags.DEFINE_integer(
        "eval_batch_size", 64, "Sequences per evaluation step, over all replicas.", lower_bound=1
    )
    flags.DEFINE_integer("steps_per_loop", 10, "Updates between two reports.")
    flags.DEFINE_integer("checkpoint_steps", 1000, "Updates between two checkpoints.")
    flags.DEFINE_integer(
        "eval_steps", 0, "Updates between two evaluations; 0 evaluates at the end only."
    )
    flags.DEFINE_integer("keep_checkpoints", 3, "How many of the newest checkpoints are kept.")


def define_device_flags() -> None:
    """Where to train."""
    flags.DEFINE_enum(
        "distribution", "mirrored", DISTRIBUTIONS, "Devices: see the README, 'GPUs and TPUs'."
    )
    flags.DEFINE_string(
        "tpu", None, "Name or address of the TPU for --distribution=tpu; 'local' on a TPU machine."
    )
    flags.DEFINE_enum(
        "precision", "float32", PRECISIONS, "Precision of the arithmetic; variables stay float32."
    )


def model_config(vocab_size: int, max_seq_length: int, data: str) -> AlbertConfig:
    """The architecture of --preset, --config_file, or the model folder in --init_checkpoint.

    A preset without weights only names an architecture, and takes over the data's vocabulary size.

    Args:
      vocab_size, max_seq_length: of the data.
      data: where these two come from, for the message.

    Raises:
      UserError: no architecture is given, or two, or the data do not fit it.
    """
    config = _named_config()
    if FLAGS.preset and not FLAGS.init_checkpoint and vocab_size != config.vocab_size:
        print(f"--preset={FLAGS.preset}: vocab_size {vocab_size}, as the data have.")
        config = config.replace(vocab_size=vocab_size)
    if vocab_size != config.vocab_size:
        raise UserError(
            f"the vocabulary of {data} has {vocab_size} pieces, the model's vocab_size is "
            f"{config.vocab_size}. Use the vocabulary that the model was made with."
        )
    if max_seq_length > config.max_position_embeddings:
        raise UserError(
            f"max_seq_length {max_seq_length} is longer than the model's "
            f"{config.max_position_embeddings} positions. Use at most that many ({data})."
        )
    return config


def _named_config() -> AlbertConfig:
    if FLAGS.preset and FLAGS.config_file:
        raise UserError("--preset and --config_file are both given. Give one.")
    if FLAGS.config_file:
        return AlbertConfig.from_json_file(FLAGS.config_file)
    if FLAGS.preset:
        return get_preset(FLAGS.preset)
    if FLAGS.init_checkpoint:
        return locate(FLAGS.init_checkpoint).config()
    raise UserError(
        f"no architecture is given. Pass --preset ({', '.join(PRESETS)}) or --config_file."
    )


def vocabulary_file() -> str:
    """--vocab_file, or else the vocabulary beside the weights of --init_checkpoint."""
    if FLAGS.vocab_file:
        return FLAGS.vocab_file
    if not FLAGS.init_checkpoint:
        raise UserError("--vocab_file is missing, and there is no --init_checkpoint to have one.")
    source = locate(FLAGS.init_checkpoint)
    if not source.vocab_file:
        raise UserError(f"--vocab_file is missing: no vocabulary lies beside {source.path}.")
    return source.vocab_file


def make_optimizer(num_train_steps: int, num_warmup_steps: int) -> keras.optimizers.Optimizer:
    """The optimizer of the training flags."""
    schedule = WarmupPolynomialDecay(FLAGS.learning_rate, num_train_steps, num_warmup_steps)
    return OPTIMIZERS[FLAGS.optimizer](
        schedule, weight_decay_rate=FLAGS.weight_decay_rate, global_clipnorm=FLAGS.global_clipnorm
    )


def loop_settings(num_train_steps: int) -> LoopSettings:
    """The loop of the training flags."""
    return LoopSettings(
        num_train_steps=num_train_steps,
        steps_per_loop=FLAGS.steps_per_loop,
        checkpoint_steps=FLAGS.checkpoint_steps,
        eval_steps=FLAGS.eval_steps,
        keep_checkpoints=FLAGS.keep_checkpoints,
    )


def flag_values() -> dict[str, Any]:
    """All flags of the project's modules by name, to be recorded with a run."""
    modules = FLAGS.flags_by_module_dict()
    return {
        flag.name: flag.value
        for name, found in modules.items()
        if not name.startswith("absl")
        for flag in found
    }
