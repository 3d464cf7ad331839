"""The flags that programs share, and what is made of them: dataclasses, and by one call each the
model, the devices and the data of a run. Nothing but this, finetuning_flags and programs reads
flags."""

from __future__ import annotations

import dataclasses
from typing import Any

from albert_tf import fast_switch
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.models import AlbertPretrainer
from albert_tf.optimization import Recipe
from albert_tf.presets import PRESETS
from albert_tf.pretraining import HeldOut, PretrainingData, open_records, open_text
from albert_tf.pretraining.objectives import Pretrainer
from albert_tf.replaced_tokens import ReplacedTokenPretrainer
from albert_tf.training import (
    DISTRIBUTIONS,
    DeviceSettings,
    InitialModel,
    LoopSettings,
    OptimizerSettings,
    RunSettings,
)
from albert_tf.training.devices import PRECISIONS, Devices, prepare_devices
from albert_tf.training.optimizers import OPTIMIZERS, SCHEDULES, recipe_for_batch
from albert_tf.training.starts import CHANGES
from data_pipeline.command_line import flags
from data_pipeline.pretraining import settings_flags
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers import tokenizer_flags
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS

OBJECTIVES = ("mlm", "replaced_tokens")
MAX_BATCH_SIZE = 2**20  # 32 times the largest that LAMB was shown for.
# Settings of examples made while they are trained on; they have no flag here.
_FIXED_FOR_TEXT = {"dupe_factor": 1, "masking": "dynamic", "pack_documents": False}
_READING = {
    *("vocab_file", "lower_case", "strip_accents", "space_chinese"),
    *("input_format", "text_field", "language"),
}


def define_architecture_flags() -> None:
    """Flags of the architecture, one of which is given."""
    flags.DEFINE_string("preset", None, f"Architecture by name: {', '.join(PRESETS)}.")
    flags.DEFINE_string(
        "config_file", None, "Architecture from an albert_config.json, instead of --preset."
    )


def define_model_flags() -> None:
    """Flags of the model."""
    flags.group("Model")
    define_architecture_flags()
    flags.DEFINE_string(
        "init_checkpoint",
        None,
        "Weights to start from: a model folder, a Hugging Face folder, the prefix of a "
        "google-research checkpoint, or the name of a published model, which is downloaded.",
    )
    flags.DEFINE_integer(
        "repeat_positions",
        0,
        "Length of the sequences that --init_checkpoint was trained on, if these are longer: "
        "positions from there on begin as copies of those before. 0: as the weights have them.",
        lower_bound=0,
    )


def define_run_flags(modes: tuple[str, ...]) -> None:
    """Flags of the run: its mode, its folder, its seed."""
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
    """Flags of the training; the arguments are the program's defaults."""
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
    flags.DEFINE_enum(
        "schedule",
        "polynomial",
        SCHEDULES,
        "polynomial falls over all updates; wsd (warm-up, constant, decay) at the end only, and a "
        "longer run goes on from before the decay.",
    )
    flags.DEFINE_float(
        "decay_share", 0.2, "Share of the updates in which the rate of wsd falls.", upper_bound=1
    )
    flags.DEFINE_float("learning_rate_power", 1.0, "Of the decay; 1 is linear.", upper_bound=100)
    flags.DEFINE_bool(
        "decay_after_warmup", False, "Decay from the end of the warm-up, not from the first step."
    )
    flags.DEFINE_float(
        "layerwise_learning_rate_decay",
        1.0,
        "Factor of the rate for each layer further down; for models whose layers do not all share.",
        upper_bound=1,
        above=0,
    )
    flags.DEFINE_float("weight_decay_rate", 0.01, "Decay inside the update.")
    flags.DEFINE_float("beta_1", 0.9, "Share of the old first moment in the new one.", below=1)
    flags.DEFINE_float(
        "beta_2",
        0.999,
        "Share of the old second moment in the new one; 0.98 follows changes sooner.",
        below=1,
    )
    flags.DEFINE_float("epsilon", 1e-6, "Added to the root of the second moment.", above=0)
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
    """Flags of the devices and the precision."""
    flags.group("Devices")
    flags.DEFINE_enum(
        "distribution",
        "mirrored",
        DISTRIBUTIONS,
        "Devices: one, all GPUs of this machine, several machines (TF_CONFIG) or a TPU.",
    )
    flags.DEFINE_string(
        "tpu",
        None,
        "Name or address of the TPU for --distribution=tpu; 'local' on a TPU machine.",
        is_address=True,
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
        fast_switch.MODES,
        "Of models: small functions compiled by XLA and what else is fast on CPUs, or plain ones. "
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


def define_pretraining_data_flags() -> None:
    """Flags of the records or the text."""
    flags.group("Data")
    flags.DEFINE_string("train_data", None, "Folder of training records.")
    flags.DEFINE_string(
        "train_text",
        None,
        "Text files (globs, separated by commas) to train on without records, instead of "
        "--train_data. The flags of create_pretraining_data say how they are read.",
    )
    flags.DEFINE_list(
        "eval_data", [], "Folders of held-out records, at most one for each sentence objective."
    )
    flags.DEFINE_string(
        "vocab_file", None, "Vocabulary for --train_text; default: that of --init_checkpoint."
    )
    settings_flags.define_flags()


def define_objective_flags() -> None:
    """Flags of the objective of pre-training."""
    flags.group("Objective")
    flags.DEFINE_enum(
        "objective",
        "mlm",
        OBJECTIVES,
        "mlm: ALBERT's masked words. replaced_tokens: ELECTRA's, a small generator fills the masks "
        "and the model, which is what is saved, tells at every token whether it is the original.",
    )
    flags.DEFINE_float(
        "generator_size",
        0.25,
        "Share of heads, hidden and intermediate size that the generator has.",
        upper_bound=1,
        above=0,
    )
    flags.DEFINE_float(
        "sampling_temperature", 1.0, "Of the words that the generator draws.", above=0
    )
    flags.DEFINE_float("detection_weight", 50.0, "Of the detection beside the generator's loss.")
    flags.DEFINE_bool("detector_order", True, "The detector learns the order of sentences, too.")


def pretraining_model(config: AlbertConfig, packed: bool) -> Pretrainer:
    """A model with random weights for the objective of the flags."""
    settings = ("generator_size", "sampling_temperature", "detection_weight", "detector_order")
    if FLAGS.objective == "replaced_tokens":
        values = {name: FLAGS[name].value for name in settings}
        return ReplacedTokenPretrainer(config, packed=packed, **values)
    if given := [name for name in settings if FLAGS[name].present]:
        raise UserError(
            f"--{given[0]} is for --objective=replaced_tokens; --objective={FLAGS.objective} has "
            "no such thing. Leave it out."
        )
    return AlbertPretrainer(config, packed=packed)


def prepare_flagged_devices() -> Devices:
    """The devices of the device flags; sets --fast and --packed, if `auto`, to what was chosen."""
    devices = prepare_devices(DeviceSettings(**_values(DeviceSettings)))
    FLAGS.fast = "on" if devices.is_fast else "off"
    FLAGS.packed = "true" if devices.packed else "false"
    return devices


def initial_model() -> InitialModel:
    """The architecture and the weights of the model flags."""
    return InitialModel(**_values(InitialModel))


def chosen_vocabulary() -> str:
    """--vocab_file, or else the vocabulary beside the weights of --init_checkpoint."""
    return initial_model().chosen_vocabulary(FLAGS.vocab_file)


def pretraining_recipe() -> Recipe:
    """Rate, updates and warm-up of pre-training, for --train_batch_size."""
    recipe = Recipe(FLAGS.learning_rate, FLAGS.num_train_steps, FLAGS.num_warmup_steps)
    return recipe_for_batch(recipe, FLAGS.recipe_batch_size, FLAGS.train_batch_size)


# A value of a flag, and the flags that it makes useless.
_USELESS_WITH = (
    ("schedule", "wsd", ("learning_rate_power", "decay_after_warmup")),
    ("schedule", "polynomial", ("decay_share",)),
    ("optimizer", "tfa_lamb", ("bias_correction",)),
)


def optimizer_settings(recipe: Recipe) -> OptimizerSettings:
    """The optimizer of the training flags, with the rate and the warm-up of a recipe.

    Raises:
      UserError: a flag is given that the schedule or the optimizer does not have.
    """
    for flag, value, others in _USELESS_WITH:
        given = [each for each in others if FLAGS[each].value != FLAGS[each].default]
        if given and FLAGS[flag].value == value:
            raise UserError(f"--{given[0]} does nothing with --{flag}={value}. Leave it out.")
    return OptimizerSettings(
        learning_rate=recipe.learning_rate,
        num_warmup_steps=recipe.num_warmup_steps,
        **_values(OptimizerSettings, "learning_rate", "num_warmup_steps"),
    )


def loop_settings(recipe: Recipe, **of_pretraining: Any) -> LoopSettings:
    """The loop of the training flags, of as many updates as a recipe has.

    of_pretraining: `max_minutes` and `eval_first`, whose flags only pre-training has.
    """
    names = ("num_train_steps", "allow_changes", "max_minutes", "eval_first")
    values = {**_values(LoopSettings, *names), **of_pretraining}
    return LoopSettings(recipe.num_train_steps, allow_changes=tuple(FLAGS.allow_changes), **values)


def run_settings(optimizer: OptimizerSettings, loop: LoopSettings) -> RunSettings:
    """The run of the run flags and the training flags, which are recorded with it."""
    values = _values(RunSettings, "optimizer", "loop", "flags")
    return RunSettings(optimizer=optimizer, loop=loop, flags=flags.resolved(), **values)


def _values(settings: type, *others: str) -> dict[str, Any]:
    """The values of the flags that have the names of a dataclass's fields, but for `others`."""
    names = [field.name for field in dataclasses.fields(settings) if field.name not in others]
    return {name: FLAGS[name].value for name in names}


def held_out() -> HeldOut:
    """The records of --eval_data."""
    return HeldOut(FLAGS.eval_data, FLAGS.eval_batch_size)


def pretraining_data() -> PretrainingData:
    """The examples of --train_data or --train_text.

    Raises:
      UserError: neither or both are given, or what is named is missing, damaged or empty.
    """
    if FLAGS.train_text:
        return _text()
    if not FLAGS.train_data:
        raise UserError(
            "--train_data is missing: a folder of records that create_pretraining_data wrote. Or "
            "train without records: name text files by --train_text."
        )
    fields = {field.name for field in dataclasses.fields(PretrainingSettings)}
    of_text = (fields | _READING) - {"seed", *_FIXED_FOR_TEXT}
    if given := sorted(name for name in of_text if FLAGS[name].present):
        raise UserError(
            f"--{given[0]} says how --train_text is read, and {FLAGS.train_data} holds records. "
            "Leave it out, or make other records with create_pretraining_data."
        )
    return open_records(FLAGS.train_data, FLAGS.train_batch_size, FLAGS.seed)


def _text() -> PretrainingData:
    """The examples of --train_text."""
    if FLAGS.train_data:
        raise UserError("--train_data and --train_text are both given. Give one.")
    return open_text(
        settings_flags.corpus_from_flags(FLAGS.train_text),
        load_tokenizer(chosen_vocabulary(), **tokenizer_flags.by_hand()),
        settings_flags.settings_from_flags(**_FIXED_FOR_TEXT),
        FLAGS.train_batch_size,
        FLAGS.seed,
    )
