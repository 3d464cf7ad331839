"""The GLUE score of runs on the dev sets, and what is said where one is missing."""

from __future__ import annotations

import pathlib
import shutil

import pytest

from albert_tf.finetuning.runs.glue_dev_score import dev_score_sentence
from albert_tf.finetuning.runs.glue_submission import FILES
from albert_tf.finetuning.runs.results import Result, Scored, write_results
from albert_tf.finetuning.runs.run_files import predictions_path
from albert_tf.metrics.scorers import SCORED_GLUE_TASKS, SCORERS


def write_run(folder, task: str, splits: dict[str, float | None]) -> str:
    """A run whose every score is the number given for its split."""
    folder.mkdir()
    names = SCORERS[task].glue
    results = [
        Result(task, split, 9, names[0], min(splits), *[Scored(1, dict.fromkeys(names, score))] * 2,
               seed=0, preset=None, data_sha256={})
        for split, score in splits.items()
    ]  # fmt: skip
    write_results(str(folder), results)
    for file in FILES.values():
        if file.task == task:
            path = f"{predictions_path(str(folder), task, file.split)}.tsv"
            pathlib.Path(path).write_text("id\tprediction\n")
    return str(folder)


@pytest.fixture
def runs(tmp_path) -> dict[str, str]:
    """A run of each task with the score 0.5, and 0.75 for one set of MNLI."""
    mnli = {"dev_matched": 0.5, "dev_mismatched": 0.75}
    return {
        task: write_run(tmp_path / task, task, mnli if task == "mnli" else {"dev": 0.5})
        for task in SCORED_GLUE_TASKS
    }


def test_the_mean_of_nine_tasks(runs):
    mean = (8 * 0.5 + (0.5 + 0.75) / 2) / 9
    expected = f"GLUE score of the dev sets: {100 * mean:.1f}"
    assert dev_score_sentence(list(runs.values())) == expected == "GLUE score of the dev sets: 51.4"


def test_what_is_missing_or_undefined(runs, tmp_path):
    others = [folder for task, folder in runs.items() if task not in ("cola", "mnli")]
    sentence = dev_score_sentence([*others, str(tmp_path)])
    assert sentence.endswith("of cola (dev), mnli (dev_matched), mnli (dev_mismatched).")
    mnli = write_run(tmp_path / "half", "mnli", {"dev_matched": 0.5, "dev_mismatched": None})
    flat = write_run(tmp_path / "flat", "cola", {"dev": 0.5})
    assert dev_score_sentence([*others, mnli, flat]).endswith("a task is undefined.")


def test_runs_without_answers_do_not_count(runs, tmp_path):
    trial = write_run(tmp_path / "mrpc_trial", "mrpc", {"dev": 0.0})
    shutil.rmtree(tmp_path / "mrpc_trial" / "predictions")
    assert dev_score_sentence([*runs.values(), trial]).endswith(": 51.4")
