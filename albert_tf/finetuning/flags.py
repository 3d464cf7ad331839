"""The flags of fine-tuning, and the task, data and settings made of them."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Collection, Iterator

from albert_tf.errors import UserError
from albert_tf.finetuning.runs.series import Variant, variants
from albert_tf.finetuning.tasks.base import Task, TaskData
from albert_tf.finetuning.tasks.squad import SquadSettings
from albert_tf.finetuning.tasks.table import (
    CONFIGURED,
    TASKS,
    Classes,
    Pairs,
    get_task,
    tasks_by_setting,
)
from albert_tf.finetuning.training import FineTuningSettings
from data_pipeline.command_line import flags
from data_pipeline.command_line.settings import define, read
from data_pipeline.files import storage
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.settings import settings_of
from data_pipeline.tokenizers import tokenizer_flags

FLAGS = flags.FLAGS

# Split -> flag of its file.
_FILES = {"train": "train_file", "dev": "dev_file", "predict": "predict_file"}
_TASK = "Task and data"  # Group of flags in --help.


def define_data_flags() -> None:
    """Flags of the task and its data."""
    flags.group(_TASK)
    flags.DEFINE_enum("task", None, tuple(TASKS), "Task to fine-tune on.", required=True)
    flags.DEFINE_string(
        "data_dir",
        None,
        "Folder of the benchmark, such as GLUE's root, or the task's own folder in it.",
    )
    define(Classes, _TASK, without=("threshold",))


def define_task_flags(needs_vocabulary: bool = False) -> None:
    """Flags of the task, its training data and their lengths.

    `needs_vocabulary`: --vocab_file is required, because no model is given that has one.
    """
    define_data_flags()
    flags.DEFINE_string("train_file", None, "Training file, for tasks that read single files.")
    flags.DEFINE_string(
        "vocab_file",
        None,
        "Vocabulary file: spiece.model or vocab.txt; model folders contain one.",
        required=needs_vocabulary,
        expert=not needs_vocabulary,
    )
    tokenizer_flags.define_flags()
    define(LengthSettings, _TASK)
    define(Pairs, _TASK)  # Its columns are already defined.
    # The others do not affect training; `define_answer_flags` defines their flags.
    of_answers = {each.name for each in settings_of(SquadSettings)} - {"only_windows_with_answer"}
    define(SquadSettings, _TASK, without=of_answers)


def define_split_flags() -> None:
    """Flags of the data that are scored and predicted."""
    flags.DEFINE_string("dev_file", None, "File to evaluate on, and to choose the best model by.")
    flags.DEFINE_string("predict_file", None, "File to predict.")
    flags.DEFINE_list(
        "splits",
        [],
        "Splits to evaluate or predict, such as dev; by default those of --mode, and in ensembles "
        "all with stored outputs.",
        expert=True,
    )


def define_records_flag() -> None:
    """The flag of training examples on disk."""
    flags.DEFINE_string(
        "train_records",
        None,
        "Folder of create_finetuning_data, made with the same settings, to train on instead of "
        "files.",
        expert=True,
    )


def define_series_flags() -> None:
    """Flags of several runs by one command."""
    flags.group("Several runs")
    flags.DEFINE_integer(
        "seeds",
        1,
        "Number of runs, with the seeds --seed, --seed + 1, ..., in folders seed-3 and so on of "
        "--output_dir; seeds.md compares them.",
        1,
        1000,
    )
    flags.DEFINE_string(
        "search",
        None,
        "Values of numeric flags to try, each combination in a separate run: "
        "learning_rate=1e-5,2e-5;train_batch_size=16,32.",
    )
    flags.DEFINE_integer(
        "retries",
        0,
        "Number of times that a run that learned nothing (the same answer to all examples) is "
        "restarted with another seed; failed runs are put aside.",
        0,
        1000,
        expert=True,
    )


def define_answer_flags(of_ensemble: bool = False) -> None:
    """Flags of answers. An ensemble averages spans that its members have found, so it has no flags
    of how to find them.
    """
    define(Classes, _TASK)  # Only the threshold: the others are already defined.
    without = (
        ("max_answer_length", "only_windows_with_answer") if of_ensemble else ("span_average",)
    )
    define(SquadSettings, "Answers to SQuAD's questions", without=without)


def task() -> Task:
    """The task named by --task, with the settings of its own flags; UserError for flags of other
    tasks.
    """
    _check_used([name for name in tasks_by_setting() if name in FLAGS and FLAGS[name].present])
    if FLAGS.task not in CONFIGURED:
        return get_task(FLAGS.task)
    kind, make = CONFIGURED[FLAGS.task]
    return make(read(kind))


def _check_used(names: Collection[str]) -> None:
    """Raises UserError for a flag of other tasks than --task."""
    for name, tasks in tasks_by_setting().items():
        if name in names and FLAGS.task not in tasks:
            raise UserError(
                f"--{name} does not apply to --task={FLAGS.task}. Leave it out, or use "
                f"--task={' or --task='.join(tasks)}."
            )


def task_data() -> TaskData:
    """The data of --data_dir, --train_records and the flags of single files."""
    named = {split: _given(name) for split, name in _FILES.items()}
    files = {split: path for split, path in named.items() if path}
    return TaskData(FLAGS.data_dir, files, train_records=_given("train_records"))


def _given(name: str) -> str | None:
    """The value of a flag that not all programs have."""
    return FLAGS[name].value if name in FLAGS else None


def splits(chosen: Task) -> list[str]:
    """The splits of --splits, by default those for --mode."""
    if FLAGS.splits:
        return FLAGS.splits
    if FLAGS.mode == "eval":
        return list(chosen.dev_splits)
    return ["predict"] if FLAGS.predict_file else list(chosen.test_splits)


def print_unused_lengths(used: LengthSettings, folder: str) -> None:
    """Prints which given flags of lengths are ignored, because the model in `folder` was trained
    with other lengths.
    """
    for name, value in dataclasses.asdict(used).items():
        if FLAGS[name].present and FLAGS[name].value != value:
            print(f"--{name}={FLAGS[name].value} is not used: {folder} was trained with {value}.")


def check_training() -> None:
    """Raises UserError for flags that training does not use, and for two that set one length."""
    for what, *names in _EITHER:
        flags.leave_one(what, *names)
    if FLAGS.splits:
        raise UserError(
            f"--splits={','.join(FLAGS.splits)} is for --mode=eval or --mode=predict, and "
            f"--mode={FLAGS.mode} trains. Leave it out, and give it to the next command."
        )
    if FLAGS.predict_file and not storage.exists(FLAGS.predict_file):
        raise UserError(f"--predict_file={FLAGS.predict_file} does not exist.")


def settings() -> FineTuningSettings:
    """The settings of a run."""
    return read(FineTuningSettings, lengths=read(LengthSettings))


# Pairs of flags that set the same quantity.
_EITHER = (
    ("the length of training", "num_train_epochs", "num_train_steps"),
    ("the length of the warm-up", "warmup_proportion", "num_warmup_steps"),
)
# --seeds varies the seed, and the others do not apply to a single run.
_NOT_SEARCHED = ("seed", "seeds", "retries", "max_failures")


def series() -> list[Variant]:
    """The runs of --seeds and --search; an empty list for a single run."""
    if FLAGS.seeds == 1 and not FLAGS.search:
        return []
    search = parse_search(FLAGS.search or "")
    _check_used(search)
    return variants(FLAGS.seed, FLAGS.seeds, search)


def parse_search(text: str) -> dict[str, list[int | float]]:
    """Values by flag: "learning_rate=1e-5,2e-5;seq=1" -> {"learning_rate": [1e-5, 2e-5], "seq":
    [1]}.
    """
    numbers = {flag.name: flag for flag in flags.defined() if _is_searched(flag)}
    search: dict[str, list[int | float]] = {}
    for part in filter(None, text.split(";")):
        name, equals, values = part.strip().partition("=")
        name = name.strip().removeprefix("--")
        if not equals or name not in numbers or name in search:
            raise UserError(
                f"--search: {part.strip()!r} should be a numeric flag, named only once, with its "
                "values, as in learning_rate=1e-5,2e-5;train_batch_size=16,32. Numeric flags: "
                f"{', '.join(sorted(numbers))}."
            )
        try:
            search[name] = [
                numbers[name].parser.parse(value.strip()) for value in values.split(",")
            ]
        except ValueError as error:
            raise UserError(f"--search: {name}: {error}; received {values!r}.") from None
        if len(set(search[name])) < len(search[name]):
            raise UserError(f"--search: {part.strip()!r} names a value twice. Name each once.")
    for what, *names in _EITHER:
        if set(names) <= search.keys():
            raise UserError(f"--search: {' and '.join(names)} both set {what}. Leave one out.")
    return search


def _is_searched(flag: flags.flags.Flag) -> bool:
    return isinstance(flag.parser, flags.NumberParser) and flag.name not in _NOT_SEARCHED


@contextlib.contextmanager
def using_variant(folder: str, variant: Variant, overwrite: bool) -> Iterator[None]:
    """A context in which the flags describe one run of several, as if it were the only one."""
    # Settings are read from the flags, and a run stores its flags: so a run of a series is the same
    # as one of a command with these flags, which can also continue it.
    values = {
        **variant.values,
        "seed": variant.seed,
        "output_dir": folder,
        "overwrite": overwrite,
        "seeds": 1,
        "search": None,
        "retries": 0,
    }
    for _, *names in _EITHER:  # A searched flag overrides its counterpart.
        if searched := variant.values.keys() & set(names):
            values |= {name: FLAGS[name].default for name in names if name not in searched}
    before = {name: (FLAGS[name].value, FLAGS[name].present) for name in values}
    try:
        for name, value in values.items():
            FLAGS[name].value = value
        for name in variant.values:  # Marked as given, for the checks of unused flags.
            FLAGS[name].present = 1
        yield
    finally:
        for name, (value, present) in before.items():
            FLAGS[name].value, FLAGS[name].present = value, present


def first_folder() -> str:
    """The folder of the first run of this command."""
    planned = series() if FLAGS.mode == "train_and_eval" else []
    return os.path.join(FLAGS.output_dir, planned[0].folder) if planned else FLAGS.output_dir
