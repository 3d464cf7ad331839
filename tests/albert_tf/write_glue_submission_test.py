"""The archive for gluebenchmark.com, from the answers that runs have stored."""

import zipfile
from pathlib import Path

import pytest

from albert_tf.finetuning.runs.glue_submission import FILES
from albert_tf.finetuning.runs.run_files import predictions_path
from albert_tf.finetuning.runs.series import RunScore, Series
from albert_tf.finetuning.tasks.answer_tables import write_predictions
from data_pipeline.files import json_records

PROGRAM = "albert_tf.write_glue_submission"


@pytest.fixture
def runs(tmp_path, monkeypatch) -> Path:
    """A folder with a run of each task, which has answered three examples; AX with MNLI's."""
    for name, file in FILES.items():
        monkeypatch.setitem(FILES, name, file._replace(num_examples=3))
        answers = [0.5, 5.25, 1.0] if file.labels is None else [file.labels[n] for n in (1, 0, 1)]
        task = "mnli" if file.task == "ax" else file.task
        path = predictions_path(str(tmp_path / "runs" / task), file.task, file.split)
        texts = {"text": ["a\tb", "prediction", ""]}
        write_predictions(f"{path}.tsv", ["0", "1", "2"], texts, answers)
    return tmp_path / "runs"


def test_eleven_files_of_nine_runs(runs, tmp_path, result_of):
    output = tmp_path / "submission.zip"
    result = result_of(PROGRAM, f"--runs={runs}/*", f"--output={output}")
    assert result.returncode == 0, result.stderr
    assert "STS-B.tsv: 3 predictions" in result.stdout and str(output) in result.stdout
    assert "No GLUE score of the dev sets" in result.stdout  # They have answers, and no scores.
    with zipfile.ZipFile(output) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert texts["STS-B.tsv"] == "index\tprediction\n0\t0.500000\n1\t5.000000\n2\t1.000000\n"
    assert texts["RTE.tsv"] == "index\tprediction\n0\tnot_entailment\n1\tentailment\n" + (
        "2\tnot_entailment\n"
    )
    assert texts["AX.tsv"] == texts["MNLI-mm.tsv"] != texts["RTE.tsv"]


def test_a_series_stands_for_its_best_run(runs, tmp_path, result_of):
    for seed in (0, 1):
        series = runs / "cola"
        path = predictions_path(str(series / f"seed-{seed}"), "cola", "test")
        write_predictions(f"{path}.tsv", [0, 1, 2], {"text": ["a"] * 3}, [str(seed)] * 3)
    scores = [RunScore(f"seed-{seed}", {}, seed, 0.5, 0.5, 1, 1, ()) for seed in (1, 0)]
    table = Series("cola", "dev", "accuracy", 2, scores, (), "seed-1")
    json_records.write(str(series / "seeds.json"), 1, table)
    output = tmp_path / "submission.zip"
    result = result_of(PROGRAM, f"--runs={runs}/*", f"--output={output}")
    assert result.returncode == 0, result.stderr
    with zipfile.ZipFile(output) as archive:
        assert archive.read("CoLA.tsv") == b"index\tprediction\n0\t1\n1\t1\n2\t1\n"


def test_wrong_answers_are_sentences(runs, tmp_path, result_of):
    output = tmp_path / "submission.zip"

    def complaint(*folders: Path) -> str:
        result = result_of(PROGRAM, f"--runs={','.join(map(str, folders))}", f"--output={output}")
        assert result.returncode == 2 and not output.exists()
        return result.stderr

    every = sorted(runs.iterdir())
    (runs / "mnli" / "predictions" / "ax_test.tsv").rename(tmp_path / "ax_test.tsv")
    shown = complaint(*every)
    assert "no answers for AX.tsv" in shown and "--task=ax --splits=test" in shown
    assert "<run of mnli>" in shown
    (tmp_path / "ax_test.tsv").rename(runs / "mnli" / "predictions" / "ax_test.tsv")

    other = predictions_path(str(tmp_path / "second"), "rte", "test")
    write_predictions(f"{other}.tsv", [0], {}, ["entailment"])
    assert "RTE.tsv: there are answers in" in complaint(*every, tmp_path / "second")
    assert "is not a folder" in complaint(*every, tmp_path / "third")

    rte = runs / "rte" / "predictions" / "rte_test.tsv"
    text = rte.read_text()
    rte.write_text(text[: text.rindex("2\t")])
    assert "should have 3 predictions" in complaint(*every)
    rte.write_text(text.replace("prediction\n", "answer\n", 1))
    assert "rte_test.tsv:1: expected a column `prediction`" in complaint(*every)
    rte.write_text(text.replace("1\tprediction", "1", 1))
    assert "rte_test.tsv:3: expected 3 cells; received 2" in complaint(*every)
