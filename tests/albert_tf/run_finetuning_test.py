"""run_finetuning in every mode on tiny files: what it writes, continues, and refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from albert_tf.checkpoints import formats, native
from albert_tf.config import AlbertConfig
from albert_tf.errors import UserError
from albert_tf.models import AlbertClassifier, AlbertPretrainer
from albert_tf.training import run_folder, running
from albert_tf.training.hooks.preemption import EXIT_CODE, StopRequest
from data_pipeline.files import atomic_files
from data_pipeline.finetuning.tsv import read_tsv
from tests.finetuning_files import read_answers, six_updates
from tests.run_results import check_tensors

METRICS = ("accuracy", "f1_macro", "matthews_corrcoef")


def write_tsv(path: Path, rows: list[tuple[str, ...]]) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path, labeled_texts) -> Path:
    """A folder with train.tsv (20 rows), dev.tsv (7), numbers.tsv (12), new.tsv (5, no labels)."""
    write_tsv(tmp_path / "train.tsv", [("text", "label"), *labeled_texts])
    write_tsv(tmp_path / "dev.tsv", [("text", "label"), *labeled_texts[3:10]])
    numbers = [(text, f"{i % 3}") for i, (text, _) in enumerate(labeled_texts[:12])]
    write_tsv(tmp_path / "numbers.tsv", [("text", "label"), *numbers])
    write_tsv(tmp_path / "new.tsv", [("text",), *((text,) for text, _ in labeled_texts[:5])])
    return tmp_path


@pytest.fixture
def run(program, files) -> Callable[..., tuple[int, str, str]]:
    """(**flags) -> exit code, stdout and stderr of a run in the folder `run`."""
    usual = {"task": "tsv", "output_dir": files / "run", "distribution": "one_device"}
    return lambda **flags: program("run_finetuning", **{**usual, "fast": "off", **flags})


@pytest.fixture
def training(work, files) -> dict[str, object]:
    """Flags of `six_updates` on the files."""
    return six_updates(files, work)


def stop_at(monkeypatch, stop: int) -> None:
    """A run of this process is stopped by SIGTERM at its n-th report."""
    calls: list[object] = []
    monkeypatch.setattr(
        StopRequest,
        "arrived",
        lambda request, strategy: calls.append(strategy) or len(calls) == stop,
    )


@pytest.mark.usefixtures("eager")
def test_a_run_and_what_it_leaves_also_when_it_was_interrupted(
    run, training, files, work, monkeypatch
):
    """With dropout, and batches sorted by length; the end has the same bits in both folders."""
    code, shown, errors = run(**training)
    assert code == 0, errors
    assert "6 (1.2 passes over 20 examples)" in shown and "2: a, b" in shown
    assert "0.69 (ln 2)" in shown and "without an order" not in shown
    out = files / "run"
    predict = f"--mode=predict --task=tsv --output_dir={out} --predict_file=..."
    assert f"Next: python -m albert_tf.run_finetuning {predict}" in shown
    assert f"run_export --model_dir={out / 'model'} --task=classifier --output_dir=..." in shown
    check_results(out, files)
    metadata = json.loads((out / "model" / "model.json").read_text())
    expected = {
        "finetuned_on": "tsv", "labels": ["a", "b"], "max_seq_length": 16, "doc_stride": 128,
        "max_query_length": 64, "max_qa_length": None, "num_classes": 2, "task": "classification",
    }  # fmt: skip
    assert expected.items() <= metadata.items()

    with monkeypatch.context() as patch:
        stop_at(patch, 2)
        code, _, errors = run(**{**training, "output_dir": files / "stopped"})
    assert code == EXIT_CODE, errors
    assert not (files / "stopped" / "results.json").exists()
    code, shown, errors = run(**{**training, "output_dir": files / "stopped"})
    assert code == 0, errors
    assert "resuming at step 4" in shown
    for name in ("model", "last_model"):
        weights = Path(name, native.WEIGHTS_PREFIX)
        check_tensors(files / "stopped" / weights, out / weights)
    for name in ("results.json", "results.md", "predictions/tsv_dev.tsv"):
        assert (files / "stopped" / name).read_bytes() == (out / name).read_bytes(), name

    code, _, errors = run(**{**training, "length_window": 1})
    assert code == 2 and "length_window was 64" in errors


def check_results(out: Path, files: Path) -> None:
    """results.json says what the files of a run say."""
    content = json.loads((out / "results.json").read_text())
    assert content["version"] == 1
    [found] = content["results"]
    splits = {name: read_tsv(str(files / f"{name}.tsv")) for name in ("train", "dev")}
    for name, folder in (("best", "model"), ("last", "last_model")):
        scored = found.pop(name)
        metadata = json.loads((out / folder / "model.json").read_text())
        assert set(scored) == {"step", "metrics", "model_sha256"}
        assert scored["step"] == metadata.get("step", metadata.get("num_train_steps"))
        assert scored["model_sha256"] == atomic_files.file_sha256(
            formats.recognize(str(out / folder)).weights_files[0]
        )
        assert tuple(scored["metrics"]) == METRICS
        assert scored["metrics"] == {key: metadata["metrics"][key] for key in METRICS}
        if name == "best":
            rows = read_answers(out / "predictions" / "tsv_dev.tsv")
            right = [row["label"] == row["prediction"] for row in rows]
            assert scored["metrics"]["accuracy"] == pytest.approx(np.mean(right), abs=1e-9)
            assert [row["label"] for row in rows] == list("bababab")
    assert found == {
        "task": "tsv",
        "split": "dev",
        "num_examples": 7,
        "key": "accuracy",
        "best_on": "dev",
        "seed": 0,
        "preset": None,
        "data_sha256": {name: split.sha256() for name, split in splits.items()},
        "init_sha256": None,
        "notes": found["notes"],
    }
    for name in ("best", "last"):
        with np.load(out / "outputs" / f"dev.{name}.npz") as kept:
            assert kept["logits"].shape == (7, 2)
    assert (out / "results.md").read_text().startswith("| task | split | score | best | last |")


@pytest.fixture
def save(work) -> Callable[..., Path]:
    """(folder, model class, **metadata) -> a model folder with the vocabulary of `work`."""

    def save(folder: Path, kind: Any = AlbertClassifier, **metadata: Any) -> Path:
        config = AlbertConfig.from_json_file(str(work / "config.json"))
        model = kind(config) if kind is AlbertPretrainer else kind(config, metadata.pop("classes"))
        settings = atomic_files.read_json(str(work / "vocabulary" / "tokenizer_settings.json"))
        vocabulary = str(work / "vocabulary" / "spiece.model")
        native.save(model, str(folder), metadata, vocabulary, settings)
        return folder

    return save


@pytest.fixture
def earlier(save, files) -> Path:
    """A model folder as run_classifier wrote it: it says neither its task nor all lengths."""
    return save(
        files / "run" / "model", classes=2, labels=["a", "b"], max_seq_length=16,
        vocab_fingerprint="", step=3, metrics={"accuracy": 0.5},
    )  # fmt: skip


def test_texts_are_predicted(run, files, earlier):
    """The model beside a run's folder, named by --init_checkpoint, answers the same."""
    code, shown, errors = run(mode="predict", predict_file=files / "new.tsv")
    assert code == 0, errors
    path = files / "run" / "predictions" / "tsv_predict.tsv"
    assert f"5 predictions: {path}" in shown
    rows = read_answers(path)
    assert list(rows[0]) == ["id", "text", "prediction", "p(a)", "p(b)"]
    texts = (files / "new.tsv").read_text().splitlines()[1:]
    assert [row["text"] for row in rows] == texts and [row["id"] for row in rows] == list("23456")
    for row in rows:
        shares = {name: float(row[f"p({name})"]) for name in "ab"}
        assert sum(shares.values()) == pytest.approx(1, abs=2e-6)
        assert row["prediction"] == max(shares, key=shares.get)
    other = {"init_checkpoint": earlier, "output_dir": files / "other"}
    code, _, errors = run(mode="predict", splits="dev", dev_file=files / "new_dev.tsv", **other)
    assert code == 2 and "new_dev.tsv does not exist" in errors
    code, _, errors = run(mode="predict", splits="dev", dev_file=files / "dev.tsv", **other)
    assert code == 0, errors
    rows = read_answers(files / "other" / "predictions" / "tsv_dev.tsv")
    assert list(rows[0]) == ["id", "text", "label", "prediction", "p(a)", "p(b)"]


def test_numbers_as_classes_are_spoken_of(run, training, files, monkeypatch):
    """At the start, before the training itself."""

    def stop(*unused, **also_unused):
        raise UserError("enough")

    monkeypatch.setattr(running, "train", stop)
    numbers = {"train_file": files / "numbers.tsv", "dev_file": files / "numbers.tsv"}
    code, shown, errors = run(**{**training, **numbers})
    assert code == 2 and "error: enough" in errors
    assert shown.count("The labels are 3 numbers from 0 to 2, treated as 3 classes") == 1


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "missing: classification/"),
        (["b", "a"], "model was trained on b, a, and the examples have a, b. Leave --init_head"),
    ],
)
def test_output_layers_of_other_classes_are_refused(run, training, files, save, labels, message):
    if labels:
        folder = save(files / "start" / "model", classes=2, labels=labels)
    else:
        folder = save(files / "start" / "model", AlbertPretrainer)
    start = {"init_checkpoint": folder, "config_file": None, "init_head": True}
    code, _, errors = run(**{**training, **start})
    assert code == 2 and message in errors and "Traceback" not in errors
    assert not (files / "run").exists()


def test_values_that_no_run_takes_delete_no_runs(run, training, files):
    earlier = files / "run" / "muon_momentum=0.9" / "seed-0" / run_folder.RUN_FILE
    earlier.parent.mkdir(parents=True)
    earlier.touch()
    code, _, errors = run(**training, search="muon_momentum=0.9", overwrite=True)
    assert code == 2 and "--muon_momentum has no effect with --optimizer=adamw" in errors
    assert earlier.exists()


@pytest.mark.table
def test_two_workers_count_every_example_once(run, training, files, start_workers):
    """Processes that talk over loopback equal one; seven examples do not fill batches of four."""
    flags = {**training, "hidden_dropout": 0, "attention_dropout": 0, "classifier_dropout": 0}
    flags |= {"num_train_steps": 4, "eval_batch_size": 4}
    code, _, errors = run(**flags)
    assert code == 0, errors
    flags |= {"output_dir": files / "two", "distribution": "multi_worker_mirrored", "fast": "off"}
    given = [f"--{name}={value}" for name, value in flags.items()]
    command = ["-m", "albert_tf.run_finetuning", "--task=tsv", *given]
    workers = start_workers(command, fresh=True)
    outputs = [worker.communicate(timeout=300)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], outputs
    assert "Results: " in outputs[0] and "Results: " not in outputs[1]
    one, two = (np.load(files / name / "outputs" / "dev.last.npz") for name in ("run", "two"))
    np.testing.assert_allclose(one["logits"], two["logits"], atol=1e-5)
    scores = [
        json.loads((files / name / "results.json").read_text())["results"][0]["last"]["metrics"]
        for name in ("run", "two")
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)
