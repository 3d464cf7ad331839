"""Which folders and stored outputs an ensemble is made of; run_ensemble_test.py has whole runs."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.runs import members
from albert_tf.finetuning.runs.members import find_folders, find_runs, find_splits, load_members
from albert_tf.finetuning.runs.run_files import Origin, outputs_path, write_outputs
from albert_tf.finetuning.runs.series import RunScore, Series
from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.table import TASKS
from albert_tf.finetuning.tasks.texts import ClassificationTask
from data_pipeline.files import json_records
from data_pipeline.finetuning.examples import Split, TextExample
from data_pipeline.finetuning.features import LengthSettings
from data_pipeline.tokenizers.base import TokenizerSettings

MNLI = TASKS["mnli"]


def store(run, split: str, checkpoint: str = "best", model: str = "m", logits=((1.0, 2.0, 3.0),)):
    origin = Origin("mnli", ("a",), f"of {split}", model)
    arrays = {"logits": np.array(logits, np.float32)}
    write_outputs(outputs_path(str(run), split, checkpoint), arrays, origin)


def test_folders_by_name_by_pattern_and_of_a_series(tmp_path):
    for name in ("a-1", "a-2", "series", "a-2.attempt-1"):
        (tmp_path / name).mkdir()
    (tmp_path / "a-3").write_text("a file")
    assert find_folders([f"{tmp_path}/a*"]) == [f"{tmp_path}/a-1", f"{tmp_path}/a-2"]
    assert find_folders([f"{tmp_path}/a-2.attempt-1"]) == [f"{tmp_path}/a-2.attempt-1"]
    names = [f"{tmp_path}/a-?", f"{tmp_path}/a-2/", f"{tmp_path}/series"]
    expected = [f"{tmp_path}/{name}" for name in ("a-1", "a-2", "series")]
    assert find_folders(names) == expected == find_runs(names)
    scores = [RunScore(f"seed-{n}", {}, n, 0.5, 0.5, 1, 1, ()) for n in (1, 0)]
    series = Series("mnli", "dev_matched", "accuracy", 2, scores, (), "seed-1")
    json_records.write(str(tmp_path / "series" / "seeds.json"), 1, series)
    assert find_runs(names)[2:] == [f"{tmp_path}/series/seed-1", f"{tmp_path}/series/seed-0"]
    for wrong in ("b-?", "a-3"):
        with pytest.raises(UserError, match="is not a folder"):
            find_folders([f"{tmp_path}/{wrong}"])


def test_splits_that_all_have_stored(tmp_path, capsys):
    runs = [str(tmp_path / name) for name in ("a", "b")]
    with pytest.raises(UserError, match=r"no outputs for --task=mnli.*--splits=dev_matched"):
        find_splits(MNLI, TaskData(), runs, ["best"], [])
    for run in runs:
        store(run, "dev_matched")
        store(run, "test_matched")
    store(runs[0], "dev_mismatched")
    found = find_splits(MNLI, TaskData(), runs, ["best"], [])
    assert found == ["dev_matched", "test_matched"]
    shown = capsys.readouterr().out
    assert "Not answered: dev_mismatched, as 1 of 2 members" in shown
    assert "test_mismatched" not in shown
    assert find_splits(MNLI, TaskData(), runs, ["best"], ["test_matched"]) == ["test_matched"]
    with pytest.raises(UserError, match=r"dev_matched\.last\.npz is missing"):
        find_splits(MNLI, TaskData(), runs, ["best", "last"], ["dev_matched"])


@pytest.mark.parametrize("task", ["tsv", "tagging"])
def test_splits_of_files_that_are_named(tmp_path, task):
    """A file to predict is a split of every task, also where the benchmark's has another name."""
    for split in ("dev", "predict"):
        store(tmp_path, split)
    data = TaskData(files={"predict": "new"})
    assert find_splits(TASKS[task], data, [str(tmp_path)], ["best"], []) == ["predict"]


def test_members(tmp_path, capsys):
    for split in ("dev_matched", "dev_mismatched"):
        store(tmp_path, split, "best", "m1", [[1, 2, 3]])
        store(tmp_path, split, "last", "m2", [[4, 5, 6]])
    runs, splits = [str(tmp_path)], ["dev_matched", "dev_mismatched"]
    found, hashes = load_members(MNLI, runs, ["best", "last"], splits)
    assert [member.name for member in found] == [f"{tmp_path} (best)", f"{tmp_path} (last)"]
    assert found[1].outputs["dev_matched"]["logits"].tolist() == [[4, 5, 6]]
    assert hashes == {split: f"of {split}" for split in splits}
    store(tmp_path, "dev_matched", "last", "m1")
    with pytest.raises(UserError, match=r"dev_mismatched\.last\.npz is from another model"):
        load_members(MNLI, runs, ["best", "last"], splits)
    store(tmp_path, "dev_mismatched", "last", "m1")
    assert len(load_members(MNLI, runs, ["best", "last"], splits)[0]) == 1
    assert "(last) is the same model as" in capsys.readouterr().out


def test_windows_of_other_lengths_are_refused(monkeypatch):
    """Rows that are no examples are parts of them, and only equal parts can be added up."""
    examples = Split("dev_matched", [TextExample("0", "a", None, "entailment", "f", 2)])
    cuts = {"runs/a": [128, True], "runs/b": [64, True]}

    def load(folder, *_):
        doc_stride, lower = cuts[folder.rpartition("/")[0]]
        settings = TokenizerSettings(lower, "google", True, True)
        return SimpleNamespace(
            folder=folder,
            features=lambda examples, has_targets: None,
            lengths=LengthSettings(doc_stride=doc_stride),
            tokenizer=SimpleNamespace(fingerprint="0", settings=settings),
        )

    monkeypatch.setattr(members, "load_finetuned", load)
    task = dataclasses.replace(MNLI, reader=lambda folder, split: examples)
    arguments = (task, TaskData("data"), list(cuts), {"dev_matched": examples.sha256()})
    assert members.read_answered(*arguments)[1]["dev_matched"].is_scored
    monkeypatch.setattr(ClassificationTask, "rows_are_examples", False)
    with pytest.raises(UserError, match="runs/b/.* has doc_stride 64, runs/a/.* has 128"):
        members.read_answered(*arguments)
    cuts["runs/b"] = [128, False]
    with pytest.raises(UserError, match="runs/b/.* has lower False, runs/a/.* has True"):
        members.read_answered(*arguments)
    cuts["runs/b"] = cuts["runs/a"]
    members.read_answered(*arguments)
    with pytest.raises(UserError, match="f holds other examples than those"):
        members.read_answered(*arguments[:3], {"dev_matched": "0"})
