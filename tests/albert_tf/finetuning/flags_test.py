"""Flags of fine-tuning become a task, its data, splits and settings."""

import dataclasses

import pytest
from absl.flags import FLAGS

from albert_tf.errors import UserError
from albert_tf.finetuning import flags as finetuning_flags
from albert_tf.finetuning.tasks.table import TASKS
from albert_tf.finetuning.training import FineTuningSettings
from albert_tf.optimization import Recipe
from albert_tf.training import InitialModel
from albert_tf.training import flags as shared_flags
from data_pipeline.command_line.settings import define
from data_pipeline.finetuning.features import LengthSettings


@pytest.fixture
def given(new_flags):
    """(**flags) -> parses them, as the program does."""
    with new_flags():
        finetuning_flags.define_task_flags()
        finetuning_flags.define_split_flags()
        finetuning_flags.define_answer_flags()
        finetuning_flags.define_series_flags()
        shared_flags.define_run_flags(modes=("train_and_eval", "eval", "predict"))
        define(InitialModel, "Model")
        define(FineTuningSettings, "Length")
        shared_flags.define_training_flags(32, optimizer="adamw", learning_rate=2e-5)

        def parse(**flags: object) -> None:
            values = {"output_dir": "out", **flags}
            FLAGS(["program", *(f"--{name}={value}" for name, value in values.items())])

        yield parse
        FLAGS.unparse_flags()


def test_the_defaults_are_those_of_the_library(given):
    given(task="mrpc")
    assert finetuning_flags.settings() == FineTuningSettings()
    assert finetuning_flags.settings().lengths == LengthSettings()
    assert finetuning_flags.task() is TASKS["mrpc"]
    data = finetuning_flags.task_data()
    assert data.data_dir is None and not data.files and not data.splits


# Each field of the settings with another value than its default.
OTHERS = {
    "learning_rate": 0.5, "train_batch_size": 3, "num_train_epochs": 1.5, "num_train_steps": 7,
    "warmup_proportion": 0.25, "num_warmup_steps": 2, "classifier_dropout": 0.2,
    "hidden_dropout": 0.3, "attention_dropout": 0.4, "init_head": True, "vocab_file": "v.model",
    "length_window": 1, "seed": 5, "lower_case": False, "strip_accents": True,
    "space_chinese": False,
}  # fmt: skip
LENGTHS = {"max_seq_length": 32, "max_qa_length": 8, "doc_stride": 16, "max_query_length": 4}


def test_every_setting_has_a_flag(given):
    names = {field.name for field in dataclasses.fields(FineTuningSettings)}
    assert names == {*OTHERS, "lengths"} and set(LENGTHS) == set(LengthSettings.__annotations__)
    given(task="tsv", **OTHERS, **LENGTHS)
    expected = FineTuningSettings(lengths=LengthSettings(**LENGTHS), **OTHERS)
    assert finetuning_flags.settings() == expected


def test_files_and_columns_of_ones_own(given, tmp_path):
    path = tmp_path / "data.tsv"
    path.write_text("one\ttwo\tscore\na\tb\t1.5\n", encoding="utf-8")
    given(
        task="regression", text_column="one", pair_column="two", label_column="score",
        train_file="t.tsv", dev_file=path, predict_file="p.tsv", data_dir="folder",
    )  # fmt: skip
    data = finetuning_flags.task_data()
    assert data.data_dir == "folder"
    assert data.files == {"train": "t.tsv", "dev": str(path), "predict": "p.tsv"}
    [example] = finetuning_flags.task().read(data, "dev").examples
    assert (example.text_a, example.text_b, example.label) == ("a", "b", 1.5)


def test_a_benchmark_knows_its_columns(given):
    given(task="cola", pair_column="text")
    message = "--pair_column does not apply to --task=cola.* use --task=tsv or --task=regression"
    with pytest.raises(UserError, match=message):
        finetuning_flags.task()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"mode": "eval", "task": "mnli"}, ["dev_matched", "dev_mismatched"]),
        ({"mode": "eval", "task": "mnli", "splits": "dev_matched"}, ["dev_matched"]),
        ({"mode": "predict", "task": "mnli"}, ["test_matched", "test_mismatched"]),
        ({"mode": "predict", "task": "tsv"}, ["predict"]),
        ({"mode": "predict", "task": "mrpc", "predict_file": "x"}, ["predict"]),
        ({"mode": "predict", "task": "mrpc", "predict_file": "x", "splits": "a,b"}, ["a", "b"]),
    ],
)
def test_splits_that_a_mode_is_for(given, flags, expected):
    given(**flags)
    assert finetuning_flags.splits(finetuning_flags.task()) == expected


def test_lengths_that_are_not_used(given, capsys):
    """A model keeps those of its training."""
    given(task="squad1.1", max_seq_length=384, doc_stride=64)
    finetuning_flags.print_unused_lengths(LengthSettings(max_seq_length=384), "runs/x/model")
    assert capsys.readouterr().out == (
        "--doc_stride=64 is not used: runs/x/model was trained with 128.\n"
    )


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("learning_rate", "should be a numeric flag"),
        ("task=1", "should be a numeric flag"),
        ("seed=1,2", "should be a numeric flag"),
        ("learning_rate=1;learning_rate=2", "once"),
        ("learning_rate=1,x", "expected a finite number"),
        ("train_batch_size=0", "expected an integer from 1"),
        ("learning_rate=0.10,0.1", "names a value twice"),
        ("doc_stride=32,64", "--doc_stride does not apply to --task=rte"),
        ("num_train_epochs=2,4;num_train_steps=5", "num_train_steps both set the length"),
    ],
)
def test_searches_that_are_refused(given, search, message):
    given(task="rte", search=search)
    with pytest.raises(UserError, match=message):
        finetuning_flags.series()


def test_a_search_for_what_does_nothing(given):
    given(task="rte", search="muon_momentum=0.8,0.9")
    (variant, _) = finetuning_flags.series()
    message = "--muon_momentum has no effect with --optimizer=adamw"
    with (
        finetuning_flags.using_variant("out", variant, False),
        pytest.raises(UserError, match=message),
    ):
        shared_flags.run_settings(Recipe(0.5, 12, 3))
    shared_flags.run_settings(Recipe(0.5, 12, 3))


def test_a_search_counts_before_a_recipe(given, monkeypatch):
    given(task="rte", num_train_steps=800, num_warmup_steps=200, search="num_train_epochs=2,4")
    found = []
    for variant in finetuning_flags.series():
        with finetuning_flags.using_variant("out", variant, False):
            settings = finetuning_flags.settings()
            found.append((settings.num_train_epochs, settings.num_train_steps))
    assert found == [(2, None), (4, None)] and FLAGS.num_train_steps == 800
    # The proportion is the user's, the number of updates that of a flag file.
    monkeypatch.setattr("sys.argv", ["program", "--warmup_proportion=0.3"])
    given(task="rte", warmup_proportion=0.3, num_warmup_steps=200)
    FLAGS["num_train_epochs"].unparse()
    FLAGS["num_train_steps"].unparse()
    finetuning_flags.check_training()
    assert (FLAGS.warmup_proportion, FLAGS.num_warmup_steps) == (0.3, None)
