"""Two tiny runs by --seeds, and what their stored outputs become: an ensemble from end to end, of
classes and of SQuAD's spans.
"""

import csv
import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from albert_tf.finetuning.runs.run_files import read_outputs, write_outputs
from albert_tf.finetuning.tasks.averaging import average_classes
from albert_tf.finetuning.tasks.table import TASKS
from tests.finetuning_files import (
    ASKED,
    IMPOSSIBLE,
    LONG,
    lengths_of,
    squad,
    write_files,
    write_start,
)

pytestmark = pytest.mark.usefixtures("eager")

PROGRAM = "albert_tf.run_finetuning"


@pytest.fixture(scope="module")
def data(tmp_path_factory, few_words) -> Path:
    """A folder with train.tsv, dev.tsv and new.tsv: sentences in order are good."""
    folder = tmp_path_factory.mktemp("tsv")
    for name, number in (("train", 24), ("dev", 12)):
        lines = ["text\tlabel"]
        for start in range(number):
            words = few_words[start : start + 4]
            lines.append(
                f"{' '.join(words if start % 2 else words[::-1])}\t{['bad', 'good'][start % 2]}"
            )
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    (folder / "new.tsv").write_text("text\nthe cat sat\nmat a on\na dog ran\n")
    return folder


@pytest.fixture
def files(data) -> list[str]:
    return ["--task=tsv", f"--dev_file={data / 'dev.tsv'}"]


@pytest.fixture
def training_flags(work, data, files) -> list[str]:
    return [
        *files,
        f"--train_file={data / 'train.tsv'}",
        f"--config_file={work / 'config.json'}",
        f"--vocab_file={work / 'vocabulary' / 'spiece.model'}",
        *("--max_seq_length=16", "--train_batch_size=4", "--num_train_steps=2", "--eval_steps=1"),
        *("--learning_rate=0.01", "--fast=off", "--distribution=one_device"),
    ]


@pytest.fixture
def call(result_of):
    """(program, *flags) -> stdout of a run that ends well."""

    def run(program: str, *argv: object) -> str:
        result = result_of(program, *map(str, argv))
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


def test_seeds_then_an_ensemble(call, result_of, training_flags, files, data, tmp_path):
    series = tmp_path / "series"
    shown = call(PROGRAM, *training_flags, "--seeds=2", f"--output_dir={series}")
    assert "Run 2 of 2: seed-1" in shown and "| median |" in shown
    table = json.loads((series / "seeds.json").read_text())
    assert sorted(run["seed"] for run in table["runs"]) == [0, 1]

    _a_run_of_a_series_is_like_any_other(call, training_flags, series, tmp_path)
    _what_is_finished_is_not_run_again(call, training_flags, series)
    _prediction_finds_the_best_run(call, data, series, table)
    _all_members(call, files, series, tmp_path)
    _files_without_labels(call, data, files, series, tmp_path)
    _wrong_members(result_of, files, series, tmp_path)


def _a_run_of_a_series_is_like_any_other(call, training_flags, series, tmp_path) -> None:
    """The second run of a process gives the same bits as one that is alone."""
    alone = tmp_path / "alone"
    call(PROGRAM, *training_flags, "--seed=1", f"--output_dir={alone}")
    assert (alone / "results.json").read_text() == (series / "seed-1/results.json").read_text()
    flags = [json.loads((run / "flags.json").read_text()) for run in (alone, series / "seed-1")]
    of_the_folder = {"output_dir": "", "sha256": ""}
    assert {**flags[0], **of_the_folder} == {**flags[1], **of_the_folder}


def _what_is_finished_is_not_run_again(call, training_flags, series) -> None:
    before = (series / "seed-0" / "results.json").stat().st_mtime_ns
    shown = call(PROGRAM, *training_flags, "--seeds=2", f"--output_dir={series}")
    assert shown.count("Finished before") == 2 and "Fine-tuning" not in shown
    assert (series / "seed-0" / "results.json").stat().st_mtime_ns == before


def _prediction_finds_the_best_run(call, data, series, table) -> None:
    new = ["--task=tsv", f"--predict_file={data / 'new.tsv'}", "--fast=off"]
    call(PROGRAM, "--mode=predict", *new, "--distribution=one_device", f"--output_dir={series}")
    best = series / table["best_run"]
    rows = (best / "predictions" / "tsv_predict.tsv").read_text().splitlines()
    kept, about = read_outputs(str(best / "outputs" / "predict.best.npz"))
    assert len(rows) == 4 and kept["logits"].shape == (3, 2)
    results = json.loads((best / "results.json").read_text())["results"]
    assert about.model_sha256 == results[0]["best"]["model_sha256"]
    assert (about.task, about.labels) == ("tsv", ("bad", "good"))


def _all_members(call, files, series, tmp_path) -> None:
    """Probabilities and scores follow from the stored outputs; the curve has all members."""
    output = tmp_path / "ensemble"
    shown = call(
        "albert_tf.run_ensemble",
        *(*files, f"--runs={series}", "--checkpoints=best,last", f"--output_dir={output}"),
    )
    paths = sorted(series.glob("seed-*/outputs/dev.*.npz"))
    models = {read_outputs(str(path))[1].model_sha256: path for path in paths}
    assert shown.count("counted once") == 4 - len(models)
    kept = [read_outputs(str(path))[0] for path in models.values()]
    chosen = average_classes(kept, "probabilities").values
    accuracy = np.mean(np.array(chosen) == np.arange(12) % 2)

    content = json.loads((output / "ensemble.json").read_text())
    (result,) = content["results"]
    assert (result["split"], result["num_examples"]) == ("dev", 12)
    assert result["metrics"]["accuracy"] == pytest.approx(accuracy)
    assert {member["model_sha256"] for member in content["members"]} == set(models)
    assert all(member["is_chosen"] for member in content["members"])
    assert (output / "ensemble.md").read_text() in shown
    table = (output / "predictions" / "tsv_dev.tsv").read_text().splitlines()
    rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert [row["prediction"] for row in rows] == [["bad", "good"][n] for n in chosen]
    with open(output / "curve.csv", newline="") as file:
        curve = list(csv.DictReader(file))
    assert [int(row["members"]) for row in curve] == list(range(1, len(models) + 1))
    assert float(curve[-1]["accuracy"]) == pytest.approx(accuracy)
    assert curve[0]["accuracy"] == curve[0]["accuracy_alone"]
    assert (output / "curve.png").read_bytes().startswith(b"\x89PNG")


def _files_without_labels(call, data, files, series, tmp_path) -> None:
    """Predicted where all members have stored outputs of the same file."""
    for seed in (0, 1):
        call(
            PROGRAM,
            *("--mode=predict", "--task=tsv", f"--predict_file={data / 'new.tsv'}", "--fast=off"),
            *("--distribution=one_device", f"--output_dir={series / f'seed-{seed}'}"),
        )
    output = tmp_path / "unlabeled"
    call(
        "albert_tf.run_ensemble",
        *("--task=tsv", f"--predict_file={data / 'new.tsv'}", f"--runs={series}/seed-?"),
        *("--average=votes", f"--output_dir={output}"),
    )
    content = json.loads((output / "ensemble.json").read_text())
    assert content["results"] == [] and content["chosen_on"] is None
    assert (content["average"], content["members"][0]["metrics"]) == ("votes", None)
    assert len((output / "predictions" / "tsv_predict.tsv").read_text().splitlines()) == 4
    assert not (output / "curve.csv").exists()


def _wrong_members(result_of, files, series, tmp_path) -> None:
    """Each is a sentence, and nothing is written."""
    output = tmp_path / "wrong"

    def complaint(*argv: object) -> str:
        flags = [f"--output_dir={output}", *map(str, argv)]
        result = result_of("albert_tf.run_ensemble", *flags)
        assert result.returncode == 2 and "Traceback" not in result.stderr
        assert not output.exists()
        return result.stderr

    other = ("--task=regression", f"--runs={series}")
    assert "has answers to tsv, and --task=regression" in complaint(*files[1:], *other)

    twin = tmp_path / "twin"
    shutil.copytree(series / "seed-1", twin)
    path = str(twin / "outputs" / "dev.best.npz")
    kept, about = read_outputs(path)
    runs = f"--runs={series / 'seed-0'},{twin}"
    for change, words in (
        ({"labels": ("good", "bad")}, "same classes, in the same order"),
        ({"data_sha256": "0" * 64}, "has answers to other examples than"),
    ):
        write_outputs(path, kept, dataclasses.replace(about, **change))
        assert words in complaint(*files, runs)
    write_outputs(path, {"logits": kept["logits"][:5]}, about)
    assert "arrays of the shapes" in complaint(*files, runs)


def test_a_flat_run_of_a_search_is_made_again(call, training_flags, tmp_path, monkeypatch):
    """The table says so."""
    monkeypatch.setattr(
        "albert_tf.finetuning.runs.attempts.nothing_learned",
        lambda results: "It is flat." if results[0].seed == 5 else None,
    )
    output = tmp_path / "search"
    flags = [*training_flags, "--seed=5", "--retries=2", f"--output_dir={output}"]
    shown = call(PROGRAM, *flags, "--search=num_train_steps=1")
    assert "HAS LEARNED NOTHING. It is flat." in shown
    point = output / "num_train_steps=1"
    results = {path.name: path / "results.json" for path in point.iterdir()}
    seeds = {
        name: json.loads(path.read_text())["results"][0]["seed"] for name, path in results.items()
    }
    assert seeds == {"seed-5": 1005, "seed-5.attempt-1": 5}
    (run,) = json.loads((output / "seeds.json").read_text())["runs"]
    assert (run["attempts"], run["seed"], run["values"]) == (2, 1005, {"num_train_steps": 1})
    assert run["folder"] == "num_train_steps=1/seed-5"


@pytest.fixture
def spans(few_words, tmp_path) -> list[str]:
    """Flags that name SQuAD 2.0's files, and one with the dev set's questions without answers."""
    write_start(tmp_path, few_words)
    data_dir = write_files(tmp_path, "squad2.0")["data_dir"]
    questions = [{name: asked[name] for name in ("id", "question")} for asked in SPANS_ASKED]
    (tmp_path / "new.json").write_text(squad(*questions))
    data = [f"--data_dir={data_dir}", f"--predict_file={tmp_path / 'new.json'}"]
    return ["--task=squad2.0", *data, "--n_best_size=50"]  # More than a window has.


SPANS_ASKED = (ASKED, IMPOSSIBLE, LONG)


def read_json(path: Path) -> dict:
    return json.loads(path.read_text())


def test_spans_of_two_runs(call, result_of, spans, tmp_path):
    series, output = tmp_path / "series", tmp_path / "ensemble"
    quick = ("--fast=off", "--distribution=one_device")
    call(
        PROGRAM,
        *(f"--{name}={value}" for name, value in lengths_of("squad1.1").items()),
        *(*spans, *quick, "--seeds=2"),
        *(f"--config_file={tmp_path / 'config.json'}", f"--vocab_file={tmp_path / 'vocab.txt'}"),
        *("--num_train_steps=2", "--train_batch_size=4", "--learning_rate=0.01"),
        f"--output_dir={series}",
    )
    for seed in (0, 1):
        call(PROGRAM, "--mode=predict", *spans, *quick, f"--output_dir={series}/seed-{seed}")
    call("albert_tf.run_ensemble", *spans, f"--runs={series}", f"--output_dir={output}")

    content = read_json(output / "ensemble.json")
    assert [member["is_chosen"] for member in content["members"]] == [True, True]
    (result,) = content["results"]
    assert tuple(result["metrics"]) == TASKS["squad2.0"].metrics
    _spans_are_averaged(series, output)
    _one_threshold_for_both_splits(output, result["metrics"])
    _windows_that_differ(result_of, spans, series, tmp_path)
    # Nothing is known of where a threshold would lie.
    alone = ("--splits=predict", f"--runs={series}", f"--output_dir={tmp_path / 'alone'}")
    refused = result_of("albert_tf.run_ensemble", *spans, *alone)
    assert refused.returncode == 2 and "Add dev to --splits, or give --null_score" in refused.stderr
    call("albert_tf.run_ensemble", *spans, *alone, "--null_score_diff_threshold=0")


def _spans_are_averaged(series, output) -> None:
    """Null odds over both runs; a span's scores over the runs that propose it."""
    name = "predictions/squad2.0_dev_{}.json"
    odds, best = (
        [read_json(folder / name.format(kind)) for folder in (*series.glob("seed-?"), output)]
        for kind in ("null_odds", "nbest_predictions")
    )
    for asked in SPANS_ASKED:
        place = asked["id"]
        assert odds[2][place] == pytest.approx((odds[0][place] + odds[1][place]) / 2)
    # All words of the context differ, and its only window is that of the short questions.
    members = [{answer["text"]: answer for answer in found["q1"]} for found in best[:2]]
    assert {answer["text"] for answer in best[2]["q1"]} == {*members[0], *members[1]}
    for answer in best[2]["q1"]:
        proposed = [found[answer["text"]] for found in members if answer["text"] in found]
        for score in ("start_log_prob", "end_log_prob"):
            expected = np.mean([one[score] for one in proposed])
            assert answer[score] == pytest.approx(expected, abs=1e-5)


def _one_threshold_for_both_splits(output, scores) -> None:
    """Found where the answers are known, it is used where they are not."""
    threshold = scores["null_score_diff_threshold"]
    assert scores["f1"] == pytest.approx(scores["best_f1"])
    texts = {}
    for split in ("dev", "predict"):
        path = f"predictions/squad2.0_{split}_{{}}.json"
        best, odds, texts[split] = (
            read_json(output / path.format(kind))
            for kind in ("nbest_predictions", "null_odds", "predictions")
        )
        expected = {name: best[name][0]["text"] * (odds[name] <= threshold) for name in best}
        assert texts[split] == expected and all(best[name][0]["text"] for name in best)
    assert texts["dev"] == texts["predict"] and "" in texts["dev"].values()


def _windows_that_differ(result_of, spans, series, tmp_path) -> None:
    """Outputs of the same shapes, of runs that cut contexts elsewhere: refused, nothing written."""
    twin, output = tmp_path / "twin", tmp_path / "refused"
    shutil.copytree(series / "seed-1", twin)
    about = read_json(twin / "model" / "model.json")
    del about["sha256"]
    (twin / "model" / "model.json").write_text(json.dumps({**about, "doc_stride": 7}))
    runs = f"--runs={series / 'seed-0'},{twin}"
    result = result_of("albert_tf.run_ensemble", *spans, runs, f"--output_dir={output}")
    assert result.returncode == 2 and not output.exists()
    words = f"{twin}/model has doc_stride 7, {series / 'seed-0'}/model has 8: they split"
    assert words in result.stderr and "Traceback" not in result.stderr
