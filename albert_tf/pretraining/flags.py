"""The flags that only pre-training has, and the model and the data made from them."""

from __future__ import annotations

import dataclasses

from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.models import AlbertPretrainer, AlbertSpanPretrainer, ReplacedTokenPretrainer
from albert_tf.optimization import Recipe, scale_recipe
from albert_tf.pretraining import HeldOut, PretrainingData, open_records, open_text
from albert_tf.pretraining.objectives import Pretrainer
from albert_tf.training import starts
from albert_tf.training.flags import chosen_vocabulary
from albert_tf.training.settings import MAX_BATCH_SIZE
from data_pipeline.command_line import flags
from data_pipeline.command_line.settings import read
from data_pipeline.corpus.documents import Corpus
from data_pipeline.pretraining import settings_flags
from data_pipeline.pretraining.settings import PretrainingSettings
from data_pipeline.tokenizers import tokenizer_flags
from data_pipeline.tokenizers.loading import load_tokenizer

FLAGS = flags.FLAGS

_WARMUP_PART = 40  # A 40th of the updates: 3,125 of 125,000 (You et al. 2019), as in the paper.
# --objective -> the class of its model, and the flags that are its arguments.
OBJECTIVES: dict[str, tuple[type, tuple[str, ...]]] = {
    "mlm": (AlbertPretrainer, ()),
    "recurring_spans": (AlbertSpanPretrainer, ("span_mask_share",)),
    "replaced_tokens": (
        ReplacedTokenPretrainer,
        ("generator_size", "sampling_temperature", "detection_weight", "detector_order"),
    ),
}
# Settings of masks that are drawn in training, both for records and for text.
_FOR_RECORDS = ("recurring_mask_share", "mask_schedule")
# Fixed settings of examples that are made in training; they have no flag here.
_FIXED_FOR_TEXT = {"dupe_factor": 1, "masking": "dynamic"}
_READING = {
    *("vocab_file", "lower_case", "strip_accents", "space_chinese"),
    *settings_flags.READING,
}


def define_data_flags() -> None:
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
        "vocab_file", None, "Vocabulary for --train_text; by default the one of --init_checkpoint."
    )
    settings_flags.define_flags(
        without={*_FIXED_FOR_TEXT, "deduplicate"},
        hidden=(*settings_flags.READING, "masked_lm_prob"),
    )


def define_objective_flags() -> None:
    """Flags of the objective of pre-training."""
    flags.group("Objective")
    flags.DEFINE_enum(
        "objective",
        "mlm",
        list(OBJECTIVES),
        "Objective of pre-training. mlm: ALBERT's masked words. recurring_spans: masked words and "
        "Splinter's; all occurrences but one of a repeated span are hidden, and the model points "
        "to that one with the head of SQuAD 1.1. replaced_tokens: ELECTRA's; a small generator "
        "fills the masks, and the model, which alone is saved, predicts for every token whether "
        "it is the original.",
    )
    flags.DEFINE_float(
        "span_mask_share",
        0.06,
        "Largest number of hidden occurrences of recurring spans in an example, as a share of its "
        "tokens; for --objective=recurring_spans.",
        upper_bound=1,
        above=0,
        expert=True,
    )
    flags.DEFINE_float(
        "generator_size",
        0.25,
        "Size of the generator, as a share of the model's heads, hidden size and intermediate "
        "size; for --objective=replaced_tokens.",
        upper_bound=1,
        above=0,
        expert=True,
    )
    flags.DEFINE_float(
        "sampling_temperature",
        1.0,
        "Softmax temperature for sampling replacement tokens.",
        above=0,
        expert=True,
    )
    flags.DEFINE_float(
        "detection_weight",
        50.0,
        "Weight of the detection loss of replaced tokens; the generator's loss has weight 1.",
        expert=True,
    )
    flags.DEFINE_bool(
        "detector_order",
        True,
        "Also train the detector of replaced tokens on the order of sentences.",
        expert=True,
    )


def define_recipe_flags() -> None:
    """Flags of `recipe`. Call it before `define_training_flags`, which shares flags that exist."""
    flags.group("Training")
    flags.DEFINE_integer(
        "num_warmup_steps",
        None,
        "Number of updates until the highest learning rate; by default a fortieth of "
        "--num_train_steps, or the value that the run in --output_dir started with.",
    )
    flags.DEFINE_integer(
        "recipe_batch_size",
        0,
        "Batch size that learning rate, updates and warm-up are meant for; they are scaled to "
        "--train_batch_size by the square root rule. 0: nothing is scaled.",
        upper_bound=MAX_BATCH_SIZE,
        expert=True,
    )


def model(config: AlbertConfig, packed: bool) -> Pretrainer:
    """A model with random weights for the objective of the flags."""
    for objective, (_, names) in OBJECTIVES.items():
        given = [name for name in names if FLAGS[name].present]
        if given and objective != FLAGS.objective:
            raise UserError(
                f"--{given[0]} is for --objective={objective} and has no effect with "
                f"--objective={FLAGS.objective}. Leave it out."
            )
    kind, names = OBJECTIVES[FLAGS.objective]
    return kind(config, packed=packed, **{name: FLAGS[name].value for name in names})


def recipe() -> Recipe:
    """Learning rate, updates and warm-up for --train_batch_size; sets --num_warmup_steps if it is
    not given, so that it is recorded.
    """
    if FLAGS.num_warmup_steps is None:
        # A run that is made longer keeps its warm-up.
        begun = {} if FLAGS.overwrite else starts.last_flags(FLAGS.output_dir)
        FLAGS.num_warmup_steps = begun.get(
            "num_warmup_steps", FLAGS.num_train_steps // _WARMUP_PART
        )
    recipe = Recipe(FLAGS.learning_rate, FLAGS.num_train_steps, FLAGS.num_warmup_steps)
    made_for, batch_size = FLAGS.recipe_batch_size, FLAGS.train_batch_size
    if made_for in (0, batch_size):
        return recipe
    scaled = scale_recipe(recipe, made_for, batch_size)
    print(f"recipe for batches of {made_for}, scaled to {batch_size}: {scaled}")
    return scaled


def held_out() -> HeldOut:
    """The records of --eval_data."""
    return HeldOut(FLAGS.eval_data, FLAGS.eval_batch_size)


def choose_sizes() -> None:
    """Drops --train_batch_size or --batch_size_schedule from a flag file if the other is given."""
    flags.leave_one("the size of batches", "train_batch_size", "batch_size_schedule")
    if FLAGS.batch_size_schedule and FLAGS.recipe_batch_size:
        raise UserError(
            f"--recipe_batch_size={FLAGS.recipe_batch_size} scales a recipe to one batch size, and "
            f"--batch_size_schedule={FLAGS.batch_size_schedule} has several. Leave one out."
        )


def _batch_size() -> int | str:
    """--train_batch_size, or --batch_size_schedule in place of it."""
    return FLAGS.batch_size_schedule or FLAGS.train_batch_size


def data() -> PretrainingData:
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
    # The seed is also the run's, and decides the order of records.
    of_text = (fields | _READING) - {"seed", *_FOR_RECORDS, *_FIXED_FOR_TEXT}
    if given := sorted(name for name in of_text if FLAGS[name].present):
        raise UserError(
            f"--{given[0]} applies to --train_text only, but {FLAGS.train_data} contains records. "
            "Leave it out, or make other records with create_pretraining_data."
        )
    masks = (FLAGS[name].value if FLAGS[name].present else None for name in _FOR_RECORDS)
    return open_records(FLAGS.train_data, _batch_size(), FLAGS.seed, *masks)


def _text() -> PretrainingData:
    """The examples of --train_text."""
    if FLAGS.train_data:
        raise UserError("--train_data and --train_text are both given. Give one.")
    flags.leave_one("the share of masks", "masked_lm_prob", "mask_schedule")
    return open_text(
        read(Corpus, patterns=FLAGS.train_text),
        load_tokenizer(chosen_vocabulary(), **tokenizer_flags.by_hand()),
        read(PretrainingSettings, **_FIXED_FOR_TEXT),
        _batch_size(),
        FLAGS.seed,
    )
