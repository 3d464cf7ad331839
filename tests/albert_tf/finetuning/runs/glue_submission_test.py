"""The archive for gluebenchmark.com; the GLUE score of runs on the dev sets, and what is said where
one is missing.
"""

import math
import pathlib
import shutil
import zipfile

import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.runs.glue_submission import (
    FILES,
    dev_score_sentence,
    submission_rows,
    write_submission,
)
from albert_tf.finetuning.runs.results import Result, Scored, write_results
from albert_tf.finetuning.runs.run_files import predictions_path
from albert_tf.metrics import SCORERS
from albert_tf.metrics.scorers import SCORED_GLUE_TASKS

PREDICTIONS = {
    name: [0.5, 5.25, -0.1] if file.labels is None else [file.labels[-1], *file.labels[:2]]
    for name, file in FILES.items()
}


@pytest.fixture
def small(monkeypatch):
    """Test sets of three examples."""
    for name, file in FILES.items():
        monkeypatch.setitem(FILES, name, file._replace(num_examples=3))


@pytest.fixture
def path(tmp_path, small) -> str:
    """A good archive."""
    write_submission(str(tmp_path / "glue.zip"), PREDICTIONS)
    return str(tmp_path / "glue.zip")


def content(path: str) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode("utf-8") for name in archive.namelist()}


def test_eleven_files(path):
    texts = content(path)
    expected = ("CoLA", "SST-2", "MRPC", "STS-B", "MNLI-m", "MNLI-mm", "QNLI", "QQP", "RTE", "WNLI")
    assert list(texts) == [f"{name}.tsv" for name in (*expected, "AX")]
    assert texts["CoLA.tsv"] == "index\tprediction\n0\t1\n1\t0\n2\t1\n"
    assert texts["STS-B.tsv"] == "index\tprediction\n0\t0.500000\n1\t5.000000\n2\t0.000000\n"
    assert texts["AX.tsv"].splitlines()[1:] == ["0\tneutral", "1\tcontradiction", "2\tentailment"]
    assert texts["MNLI-m.tsv"] == texts["MNLI-mm.tsv"] == texts["AX.tsv"]
    assert texts["RTE.tsv"] == texts["QNLI.tsv"] and "not_entailment" in texts["RTE.tsv"]


def test_equal_predictions_give_equal_bytes(path, tmp_path):
    other = tmp_path / "other.zip"
    write_submission(str(other), dict(reversed(PREDICTIONS.items())))
    with open(path, "rb") as file:
        assert other.read_bytes() == file.read()
    with zipfile.ZipFile(path) as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_DEFLATED}
        assert {info.date_time for info in archive.infolist()} == {(2020, 1, 1, 0, 0, 0)}


def test_the_official_sizes(tmp_path):
    assert {name: file.num_examples for name, file in FILES.items()} == {
        "CoLA.tsv": 1063, "SST-2.tsv": 1821, "MRPC.tsv": 1725, "STS-B.tsv": 1379,
        "MNLI-m.tsv": 9796, "MNLI-mm.tsv": 9847, "QNLI.tsv": 5463, "QQP.tsv": 390965,
        "RTE.tsv": 3000, "WNLI.tsv": 146, "AX.tsv": 1104,
    }  # fmt: skip
    with pytest.raises(UserError, match="CoLA.tsv should have 1063 predictions.*received 3"):
        write_submission(str(tmp_path / "glue.zip"), PREDICTIONS)
    assert {(file.task, file.split) for file in FILES.values()} >= {
        ("mnli", "test_matched"),
        ("mnli", "test_mismatched"),
        ("ax", "test"),
    }
    assert {file.task for file in FILES.values()} < set(SCORERS)


@pytest.mark.usefixtures("small")
def test_wrong_predictions_write_nothing(tmp_path):
    def refused(changes, message):
        with pytest.raises(UserError, match=message):
            write_submission(str(tmp_path / "glue.zip"), {**PREDICTIONS, **changes})

    refused({"RTE.tsv": ["0", "1", "0"]}, "RTE.tsv: prediction 0 should be one of entailment, not_")
    for value in (math.nan, math.inf, -math.inf, "high"):
        refused({"STS-B.tsv": [1.0, value, 1.0]}, "STS-B.tsv: prediction 1 should be a number")
    refused({"CoLA.tsv": ["0", "1"]}, "CoLA.tsv should have 3 predictions.*received 2")
    assert not list(tmp_path.iterdir())
    assert submission_rows("CoLA.tsv", [1, 0]) == ["1", "0"]


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
    assert sentence.endswith("for cola (dev), mnli (dev_matched), mnli (dev_mismatched).")
    mnli = write_run(tmp_path / "half", "mnli", {"dev_matched": 0.5, "dev_mismatched": None})
    flat = write_run(tmp_path / "flat", "cola", {"dev": 0.5})
    assert dev_score_sentence([*others, mnli, flat]).endswith("a task is undefined.")


def test_runs_without_answers_do_not_count(runs, tmp_path):
    trial = write_run(tmp_path / "mrpc_trial", "mrpc", {"dev": 0.0})
    shutil.rmtree(tmp_path / "mrpc_trial" / "predictions")
    assert dev_score_sentence([*runs.values(), trial]).endswith(": 51.4")
