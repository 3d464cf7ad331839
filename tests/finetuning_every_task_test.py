"""Every task's own command, from files in the official layout to scores and answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from albert_tf.finetuning.tasks.base import TaskData
from albert_tf.finetuning.tasks.table import TASKS
from albert_tf.training.report import machine
from tests.finetuning_files import GOOD, LONG, lengths_of, read_answers, write_files, write_start

# tf.data traces its functions all the same, and says so.
pytestmark = pytest.mark.filterwarnings("ignore:Even though the .tf.config.experimental_run_func")
PROGRAM = "albert_tf.run_finetuning"
DIAGNOSTIC = "index\tsentence1\tsentence2\n0\tthe cat sat\tthe cat\n1\ta dog\ta cat\n2\ta\tb\n"
SPANS = ("squad1.1", "squad2.0")


@pytest.fixture(scope="module")
def start(tmp_path_factory, few_words) -> Path:
    """A folder with vocab.txt and config.json."""
    folder = tmp_path_factory.mktemp("start")
    write_start(folder, few_words)
    return folder


@pytest.fixture(autouse=True)
def quick(eager, monkeypatch):
    """Nothing is traced, which would take longer than the few batches, and the machine's rate is
    not measured, which takes a second.
    """
    monkeypatch.setattr(machine, "matmul_flops_per_second", lambda *given: 1e11)


@pytest.fixture
def call(result_of, tmp_path) -> Callable[..., str]:
    """(**flags) -> stdout of the program, whose run is tmp_path / "run"."""

    def call(**flags: object) -> str:
        values = {"output_dir": tmp_path / "run", "distribution": "one_device", "fast": "off"}
        given = [f"--{name}={value}" for name, value in {**values, **flags}.items()]
        result = result_of(PROGRAM, *given)
        assert result.returncode == 0, result.stderr
        return result.stdout

    return call


@pytest.fixture
def train(call, start, tmp_path) -> Callable[..., list[dict[str, Any]]]:
    """(task, **changed files) -> the results of two updates on its files."""

    def train(name: str, **changed: str) -> list[dict[str, Any]]:
        files = write_files(tmp_path, name, **changed)
        model = {"config_file": start / "config.json", "vocab_file": start / "vocab.txt"}
        rates = {"num_train_steps": 2, "train_batch_size": 2, "learning_rate": 0.01}
        call(task=name, **files, **model, **lengths_of(name), **rates)
        return json.loads((tmp_path / "run" / "results.json").read_text())["results"]

    return train


def check_scores(name: str, result: dict[str, Any], folder: Path) -> None:
    """The result has the task's scores, which are those of the written answers."""
    task, split = TASKS[name], result["split"]
    assert (result["task"], result["key"]) == (name, task.key)
    for checkpoint in ("best", "last"):
        assert tuple(result[checkpoint]["metrics"]) == task.metrics
    scores = result["best"]["metrics"]
    answers = folder / "run" / "predictions" / f"{name}_{split}"
    if name in SPANS:
        texts = json.loads(answers.with_name(f"{answers.name}_predictions.json").read_text())
        right = [texts["q1"] == "cat", texts["long"] == "cat", texts.get("q2") == ""]
        assert set(texts) == {"q1", LONG["id"], *(["q2"] if name == "squad2.0" else [])}
        assert scores["exact"] == pytest.approx(100 * sum(right) / len(texts))
    elif name == "tagging":
        lines = [line.split("\t") for line in Path(f"{answers}.conll").read_text().splitlines()]
        assert [line[:2] for line in lines if line != [""]] == [
            ["cat", "B-X"], ["sat", "O"], ["mat", "O"]
        ]  # fmt: skip
    else:
        check_table(scores, read_answers(Path(f"{answers}.tsv")))


def check_table(scores: dict[str, float], rows: list[dict[str, str]]) -> None:
    """The scores are those of a table with the columns `label` and `prediction`."""
    assert len(rows) == 2
    pairs = [(row["label"], row["prediction"]) for row in rows]
    right = [label == prediction for label, prediction in pairs]
    if "accuracy" in scores:
        assert scores["accuracy"] == sum(right) / 2
    else:
        errors = [(float(label) - float(prediction)) ** 2 for label, prediction in pairs]
        assert scores["mean_squared_error"] == pytest.approx(sum(errors) / 2, rel=1e-4)
    for level in ("middle", "high"):
        if f"accuracy_{level}" in scores:
            (of_level,) = [ok for row, ok in zip(rows, right) if row["id"].startswith(level)]
            assert scores[f"accuracy_{level}"] == of_level


# Numbers, spans, choices and tags, each of one task; the others: `make test-all`.
FEW = ("sts-b", "squad2.0", "race", "tagging")


@pytest.mark.parametrize(
    "name",
    [
        name if name in FEW else pytest.param(name, marks=pytest.mark.table)
        for name in sorted({*GOOD} - {"mnli"})
    ],
)
def test_from_files_to_scores(name, train, tmp_path):
    (result,) = train(name)
    files = {"dev": str(tmp_path / "data" / "dev.tsv")} if TASKS[name].reader is None else {}
    dev = TASKS[name].read(TaskData(str(tmp_path / "data"), files), "dev")
    assert (result["split"], result["num_examples"]) == ("dev", len(dev))
    check_scores(name, result, tmp_path)


def test_mnli_is_trained_once_and_answers_the_diagnostic_set(train, call, tmp_path):
    other = GOOD["mnli"][2].replace("\tentailment", "\tcontradiction")
    results = train("mnli", dev_mismatched=other)
    assert [result["split"] for result in results] == ["dev_matched", "dev_mismatched"]
    for result, label in zip(results, ("entailment", "contradiction")):
        check_scores("mnli", result, tmp_path)
        answers = tmp_path / "run" / "predictions" / f"mnli_{result['split']}.tsv"
        assert [row["label"] for row in read_answers(answers)] == ["neutral", label]
    (tmp_path / "glue" / "diagnostic").mkdir(parents=True)
    (tmp_path / "glue" / "diagnostic" / "diagnostic.tsv").write_text(DIAGNOSTIC)
    path = tmp_path / "run" / "predictions" / "ax_test.tsv"
    shown = call(mode="predict", task="ax", data_dir=tmp_path / "glue")
    assert f"3 predictions: {path}" in shown
    rows = read_answers(path)
    assert [row["id"] for row in rows] == ["0", "1", "2"]
    assert {row["prediction"] for row in rows} <= set(TASKS["ax"].labels)


@pytest.mark.parametrize(
    "name",
    [
        "squad2.0",
        pytest.param("squad1.1", marks=pytest.mark.table),
        pytest.param("boolq", marks=pytest.mark.table),
    ],
)
def test_halves_of_surrogate_pairs_are_read_as_replaced(name, train, call, tmp_path):
    """JSON may hold a half, which no answer in UTF-8 may: that was found after all training.

    An answer behind a half is at the place that the file names.
    """
    content = GOOD[name][2].replace("is it", "\\uD83D is it").replace("It is.", "It \\udc00 is.")
    content = content.replace("the cat", "\\ud83d the cat\\ud83d").replace(": 4", ": 6")
    train(name, train=content, dev=content)
    files = {"data_dir": tmp_path / "data", "splits": "dev"}
    if name in SPANS:
        files = {"predict_file": next((tmp_path / "data").glob("dev*"))}
    call(mode="predict", task=name, **files)
    written = [path.read_text("utf-8") for path in (tmp_path / "run" / "predictions").iterdir()]
    assert any("\ufffd" in text for text in written)


def test_no_task_is_left_out():
    assert {*GOOD, "ax"} == set(TASKS)
    assert {*FEW} <= {*GOOD}
