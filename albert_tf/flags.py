"""Flags that binaries share, and what they stand for."""

from __future__ import annotations

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.keras_compat import keras
from albert_tf.layers import fast
from albert_tf.optimization import (
    LAMB,
    AdamW,
    Recipe,
    WarmupPolynomialDecay,
    addons_lamb,
    layerwise_factors,
    scale_recipe,
)
from albert_tf.presets import PRESETS, get_preset
from albert_tf.pretrained import locate
from albert_tf.tasks import Task
from albert_tf.training import DISTRIBUTIONS, LoopSettings, Stepper
from albert_tf.training.memory import check_evaluation_memory, check_training_memory
from albert_tf.training.starts import CHANGES
from albert_tf.training.steps import check_batch_size, skip_bad_updates
from data_pipeline.command_line import flags

FLAGS = flags.FLAGS

OPTIMIZERS = ("lamb", "adamw", "tfa_lamb")
MAX_BATCH_SIZE = 2**20  # 32 times the largest that LAMB was shown for.
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")


def define_model_flags() -> None:
    """Which model."""
    flags.group("Model")
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
    flags.group("Run")
    flags.DEFINE_enum("mode", modes[0], modes, "What to do.")
    flags.DEFINE_string(
        "output_dir", None, "Folder of the run; a run found there is continued.", required=True
    )
    flags.DEFINE_bool("overwrite", False, "Delete the run found in --output_dir and start over.")
    flags.DEFINE_list(
        "allow_changes",
        [],
        f"Changes to accept when a run is continued, of: {', '.join(CHANGES)}. A change not named "
        "here is refused.",
    )
    flags.register_validator(
        "allow_changes",
        lambda names: set(names) <= set(CHANGES),
        message=f"Name some of {', '.join(CHANGES)}.",
    )
    flags.DEFINE_integer("seed", 0, "Decides initial weights, order of the data and dropout.")


def define_training_flags(optimizer: str, learning_rate: float, train_batch_size: int) -> None:
    """How to train; the arguments are the binary's defaults."""
    flags.group("Training")
    flags.DEFINE_enum(
        "optimizer",
        optimizer,
        OPTIMIZERS,
        "lamb and adamw are google-research/albert's; tfa_lamb is TensorFlow Addons'.",
    )
    flags.DEFINE_bool(
        "bias_correction", False, "Correct the moments of lamb and adamw, unlike the reference."
    )
    flags.DEFINE_float(
        "learning_rate",
        learning_rate,
        "Highest rate, reached at the end of the warm-up.",
    )
    flags.DEFINE_float("learning_rate_power", 1.0, "Of the decay; 1 is linear.", upper_bound=100)
    flags.DEFINE_bool(
        "decay_after_warmup", False, "Decay from the end of the warm-up, not from the first step."
    )
    flags.DEFINE_float(
        "layerwise_learning_rate_decay",
        1.0,
        "Factor of the rate for each layer further down; has no meaning where all layers share.",
        upper_bound=1,
        above=0,
    )
    flags.DEFINE_float("weight_decay_rate", 0.01, "Decay inside the update.")
    flags.DEFINE_float(
        "global_clipnorm", 1.0, "Largest global norm of the gradient; 0 turns clipping off."
    )
    flags.DEFINE_integer(
        "train_batch_size",
        train_batch_size,
        "Sequences per update, over all replicas.",
        lower_bound=1,
        upper_bound=MAX_BATCH_SIZE,
    )
    flags.DEFINE_integer(
        "gradient_accumulation_steps",
        1,
        "In how many parts the batch of a replica is worked through before one update.",
        lower_bound=1,
    )
    flags.DEFINE_bool(
        "recompute",
        False,
        "Compute activations again for the gradient instead of keeping them: less memory, more "
        "time.",
    )
    flags.DEFINE_integer(
        "eval_batch_size",
        64,
        "Sequences per evaluation step, over all replicas.",
        lower_bound=1,
        upper_bound=MAX_BATCH_SIZE,
    )
    flags.DEFINE_integer("steps_per_loop", 10, "Updates between two reports.", lower_bound=1)
    flags.DEFINE_integer("checkpoint_steps", 1000, "Updates between two checkpoints.", 1)
    flags.DEFINE_integer(
        "eval_steps", 0, "Updates between two evaluations; 0 evaluates at the end only."
    )
    flags.DEFINE_integer("keep_checkpoints", 3, "How many of the newest checkpoints are kept.", 1)
    flags.DEFINE_integer(
        "max_bad_steps",
        0,
        "Steps without a finite loss and gradient that may be left out in one start; ten in a row "
        "end the run.",
    )
    flags.DEFINE_integer("max_failures", 0, "How often a run that dies is started again.")


def define_device_flags() -> None:
    """Where to train."""
    flags.group("Devices")
    flags.DEFINE_enum(
        "distribution", "mirrored", DISTRIBUTIONS, "Devices: see the README, 'GPUs and TPUs'."
    )
    flags.DEFINE_string(
        "tpu", None, "Name or address of the TPU for --distribution=tpu; 'local' on a TPU machine."
    )
    flags.DEFINE_enum(
        "precision", "float32", PRECISIONS, "Precision of the arithmetic; variables stay float32."
    )
    flags.DEFINE_bool(
        "jit_compile", False, "Compile steps with XLA; TPUs always do. Slower on most CPUs."
    )
    flags.DEFINE_enum(
        "fast",
        "auto",
        fast.MODES,
        "Small functions compiled by XLA and what else is fast on CPUs, or ordinary operations. "
        "auto: on for the CPUs of Linux machines where XLA compiles.",
    )
    flags.DEFINE_enum(
        "packed",
        "auto",
        ("auto", "true", "false"),
        "Leave padding out of the dense layers. auto: not on GPUs, TPUs and with --jit_compile.",
    )
    flags.DEFINE_bool(
        "deterministic",
        False,
        "Also on GPUs the same bits in every run, at some cost; CPUs need no flag.",
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
    return config.replace(recompute=config.recompute or FLAGS.recompute)


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


def make_optimizer(config: AlbertConfig, recipe: Recipe) -> keras.optimizers.Optimizer:
    """The optimizer of the training flags.

    Raises:
      UserError: flags that do not go together.
    """
    schedule = WarmupPolynomialDecay(
        recipe.learning_rate,
        recipe.num_train_steps,
        recipe.num_warmup_steps,
        FLAGS.learning_rate_power,
        FLAGS.decay_after_warmup,
    )
    clipnorm = FLAGS.global_clipnorm or None  # None does not clip.
    common = dict(weight_decay_rate=FLAGS.weight_decay_rate, global_clipnorm=clipnorm)
    layer_decay, factors = FLAGS.layerwise_learning_rate_decay, []
    if layer_decay != 1.0:
        factors = layerwise_factors(config, layer_decay)
    if FLAGS.optimizer == "tfa_lamb":
        if factors:
            raise UserError(
                f"--layerwise_learning_rate_decay={layer_decay} does not go with "
                "--optimizer=tfa_lamb. Use lamb or adamw."
            )
        optimizer = addons_lamb(schedule, **common)
    else:
        kind = {"lamb": LAMB, "adamw": AdamW}[FLAGS.optimizer]
        optimizer = kind(
            schedule,
            bias_correction=FLAGS.bias_correction,
            learning_rate_factors=factors,
            **common,
        )
    return _guarded(optimizer)


def _guarded(optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
    """Scales the loss where the precision needs it, and leaves out bad updates on request."""
    is_half = FLAGS.precision == "mixed_float16"
    if FLAGS.distribution == "tpu" and (is_half or FLAGS.max_bad_steps):
        raise UserError(
            f"--precision={FLAGS.precision} with --max_bad_steps={FLAGS.max_bad_steps} does not go "
            "with --distribution=tpu. Use mixed_bfloat16 and 0."
        )
    if is_half:
        return keras.mixed_precision.LossScaleOptimizer(optimizer)
    return skip_bad_updates(optimizer) if FLAGS.max_bad_steps else optimizer


def scaled_recipe(recipe: Recipe, made_for: int) -> Recipe:
    """The recipe for --train_batch_size, when it was made for another size; 0: leave it alone."""
    if not made_for or made_for == FLAGS.train_batch_size:
        return recipe
    scaled = scale_recipe(recipe, made_for, FLAGS.train_batch_size)
    print(f"recipe for batches of {made_for}, scaled to {FLAGS.train_batch_size}: {scaled}")
    return scaled


def check_train_batch(
    config: AlbertConfig,
    max_seq_length: int,
    num_examples: int | None,
    data: str,
    strategy: tf.distribute.Strategy,
) -> None:
    """Refuses batches that hold an example twice, or that this machine's memory cannot hold.

    Args:
      num_examples: how many there are to train on, in `data`; None: nobody has counted them.

    Raises:
      UserError: --train_batch_size is too large.
    """
    if num_examples is not None and FLAGS.train_batch_size > num_examples:
        raise UserError(
            f"--train_batch_size={FLAGS.train_batch_size} is more than the {num_examples} examples "
            f"of {data}: an update would see some of them twice. Use at most {num_examples}."
        )
    parts = FLAGS.gradient_accumulation_steps
    check_training_memory(config, FLAGS.train_batch_size, parts, max_seq_length, strategy)


def evaluation_batch(
    config: AlbertConfig, max_seq_length: int, num_examples: int, strategy: tf.distribute.Strategy
) -> int:
    """--eval_batch_size, or less where all examples fit into less.

    Raises:
      UserError: this machine's memory cannot hold such a batch.
    """
    replicas = strategy.num_replicas_in_sync
    batch_size = min(FLAGS.eval_batch_size, -(-num_examples // replicas) * replicas)
    check_evaluation_memory(config, batch_size, max_seq_length)
    return batch_size


def make_stepper(
    task: Task, optimizer: keras.optimizers.Optimizer, strategy: tf.distribute.Strategy
) -> Stepper:
    """Training steps as the flags want them."""
    replicas, micro_batches = strategy.num_replicas_in_sync, FLAGS.gradient_accumulation_steps
    check_batch_size(FLAGS.train_batch_size, replicas, micro_batches)
    return Stepper(task, optimizer, strategy, FLAGS.seed, micro_batches, FLAGS.jit_compile)


def loop_settings(num_train_steps: int) -> LoopSettings:
    """The loop of the training flags."""
    return LoopSettings(
        num_train_steps=num_train_steps,
        steps_per_loop=FLAGS.steps_per_loop,
        checkpoint_steps=FLAGS.checkpoint_steps,
        eval_steps=FLAGS.eval_steps,
        keep_checkpoints=FLAGS.keep_checkpoints,
        max_bad_steps=FLAGS.max_bad_steps,
        allow_changes=tuple(FLAGS.allow_changes),
    )
