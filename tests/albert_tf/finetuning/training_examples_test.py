"""Training examples on disk: the same batches for every form of task; made again when needed."""

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning import training_examples
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.table import TASKS, Classes, own_classes
from albert_tf.finetuning.training_examples import (
    make_examples,
    read_training_records,
    write_training_records,
)
from data_pipeline.finetuning.batches import finetuning_dataset
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.tokenizers.loading import load_tokenizer
from tests.crash_points import crash_points
from tests.finetuning_cases import FORMS, LENGTHS, split_of

every_form = pytest.mark.parametrize("task", FORMS.values(), ids=FORMS)


@pytest.fixture
def tokenizer(vocab_file):
    return load_tokenizer(vocab_file)


@every_form
def test_every_form_of_task_has_the_same_batches(task, tokenizer, few_words, tmp_path):
    split = split_of(task, few_words, 30)
    source, folder = TaskData(splits={"train": split}), str(tmp_path / "records")
    manifest, was_there = write_training_records(task, source, tokenizer, LENGTHS, folder)
    assert not was_there and manifest["task"] == task.name and manifest["num_examples"] == 30
    expected = make_examples(task, split, tokenizer, LENGTHS)
    found = read_training_records(folder, task, tokenizer, LENGTHS)
    assert dataclasses.replace(found, name="", features=None) == dataclasses.replace(
        expected, name="", features=None
    )
    assert found.sha256 == split.sha256()
    assert len(found) == len(expected) == manifest["num_records"]
    for options in ({}, {"static_shapes": True, "start_step": 5}):
        datasets = (
            finetuning_dataset(examples.features, 4, seed=1, **options).take(20)
            for examples in (expected, found)
        )
        for one, two in zip(*(dataset.as_numpy_iterator() for dataset in datasets)):
            assert list(one) == list(two)
            for name, values in one.items():
                assert two[name].dtype == values.dtype
                np.testing.assert_array_equal(two[name], values, err_msg=name)


@pytest.fixture
def records(tokenizer, few_words, tmp_path):
    """Makes records of some examples of a task; returns whether they were there."""

    def make(task=TASKS["cola"], lengths=LENGTHS, overwrite=False, num_examples=30) -> bool:
        source = TaskData(splits={"train": split_of(task, few_words, num_examples)})
        folder = str(tmp_path / "records")
        return write_training_records(task, source, tokenizer, lengths, folder, overwrite)[1]

    return make


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), os.stat(path).st_mtime_ns) for path in folder.iterdir()}


def test_a_folder_is_used_again(records, tmp_path, monkeypatch):
    assert not records()
    before = content(tmp_path / "records")
    with monkeypatch.context() as patch:
        patch.setattr(training_examples, "make_examples", None)  # Nothing is tokenized.
        assert records()
    assert content(tmp_path / "records") == before
    assert not records(overwrite=True)
    after = content(tmp_path / "records")
    assert {name: text for name, (text, _) in after.items()} == {
        name: text for name, (text, _) in before.items()
    }
    assert after != before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengths": LengthSettings(16)}, "was made with max_seq_length 32, and this .* has 16"),
        ({"num_examples": 29}, "was made with examples '.*, and this command has '"),
    ],
)
def test_a_folder_of_other_data_is_kept(records, tmp_path, change, message):
    records()
    before = content(tmp_path / "records")
    with pytest.raises(UserError, match=message + ".*replace it with --overwrite"):
        records(**change)
    assert content(tmp_path / "records") == before
    assert not records(**change, overwrite=True)
    manifest = json.loads((tmp_path / "records" / "manifest.json").read_text())
    names = {"manifest.json", *(entry["name"] for entry in manifest["files"])}
    assert {path.name for path in (tmp_path / "records").iterdir()} == names


def test_an_error_leaves_nothing(records, tmp_path, monkeypatch):
    def fail(*unused):
        raise KeyboardInterrupt

    monkeypatch.setattr(training_examples, "write_features", fail)
    with pytest.raises(KeyboardInterrupt):
        records()
    assert not (tmp_path / "records").exists()


def test_killed_at_any_moment(records, tmp_path):
    """While the records replace others: the same command ends with the same bytes."""
    records(TASKS["sst-2"])
    records(overwrite=True)
    expected = {name: text for name, (text, _) in content(tmp_path / "records").items()}

    def prepare() -> None:
        records(TASKS["sst-2"], overwrite=True)

    def work() -> None:
        records(overwrite=True)

    num_kills = 0
    for _ in crash_points(prepare, work):
        records(overwrite=True)
        found = {name: text for name, (text, _) in content(tmp_path / "records").items()}
        assert found == expected
        num_kills += 1
    assert num_kills > 5


COLUMNS = {"text_column": "text", "label_column": "label"}


@pytest.mark.parametrize(
    ("stored", "wanted", "lengths", "message"),
    [
        (TASKS["cola"], TASKS["sst-2"], {}, "task 'cola', and this command has 'sst-2'"),
        (TASKS["cola"], TASKS["cola"], {"max_seq_length": 24}, "max_seq_length 32.* has 24"),
        (TASKS["squad1.1"], TASKS["squad1.1"], {"doc_stride": 4}, "doc_stride 8, .* has 4"),
        (
            TASKS["squad1.1"],
            FORMS["whole answers"],
            {},
            "only_windows_with_answer False, and this command has True",
        ),
        (
            own_classes(),
            own_classes(Classes(pair_column="other")),
            {},
            "pair_column None, and this command has 'other'",
        ),
        (
            TASKS["cola"],
            dataclasses.replace(TASKS["cola"], labels=("0", "1", "2")),
            {},
            r"labels \['0', '1'\], and this command has \['0', '1', '2'\]",
        ),
    ],
)
def test_records_of_other_settings_are_refused(
    stored, wanted, lengths, message, records, tokenizer, tmp_path
):
    records(stored)
    folder = str(tmp_path / "records")
    lengths = dataclasses.replace(LENGTHS, **lengths)
    with pytest.raises(UserError, match=f"--train_records={folder} was made with {message}") as e:
        read_training_records(folder, wanted, tokenizer, lengths)
    assert "make new records with python -m albert_tf.create_finetuning_data" in str(e.value)


def test_records_of_another_vocabulary_are_refused(records, tokenizer, tmp_path, vocab_file):
    records()
    folder = str(tmp_path / "records")
    cased = load_tokenizer(vocab_file, lower=not tokenizer.settings.lower)
    with pytest.raises(UserError, match="lower True, and this command has False"):
        read_training_records(folder, TASKS["cola"], cased, LENGTHS)
    tokenizer.fingerprint = "other"
    with pytest.raises(UserError, match="vocabulary '.*, and this command has 'other'"):
        read_training_records(folder, TASKS["cola"], tokenizer, LENGTHS)


def test_folders_that_are_none(records, tokenizer, tmp_path, work):
    with pytest.raises(UserError, match=r"does not exist. Make one with python -m albert_tf.creat"):
        read_training_records(str(tmp_path / "no"), TASKS["cola"], tokenizer, LENGTHS)
    with pytest.raises(UserError, match="should describe albert_finetuning_records"):
        read_training_records(str(work / "sop"), TASKS["cola"], tokenizer, LENGTHS)
