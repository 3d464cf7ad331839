"""Key figures are read from small files of known content."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from data_pipeline.records import record_folder
from demo import figures


@pytest.fixture
def write(tmp_path):
    """(path below the output folder, text or value) -> writes it, as JSON unless it is text."""

    def write(path: str, content: object) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))

    return write


def test_corpus(tmp_path, write):
    write("corpus/train.txt", f"{'a' * 149_990}\n\nb\n\n \n\nc\n")
    write("corpus/heldout.txt", "a\nb\n")
    assert figures.corpus(tmp_path) == "0.1 MB, 3 documents, 1 held out"
    write("corpus/train.txt", f"{'a' * 2_600_000}\n")
    assert figures.corpus(tmp_path) == "2.6 MB, 1 documents, 1 held out"


@pytest.fixture
def records(tmp_path):
    """Manifests and counts of masked labels of both splits."""
    for split, number, counts in (("train", 300, [0, 6, 2]), ("heldout", 20, [0, 3, 1])):
        folder = tmp_path / "records" / split
        folder.mkdir(parents=True)
        fields = {"num_records": number, "max_seq_length": 64, "vocab_fingerprint": "same"}
        record_folder.write_manifest(str(folder), fields)
        (folder / "label_counts.json").write_text(json.dumps({"counts": counts}))


def test_records(tmp_path, records):
    assert figures.records(tmp_path) == "300 records of 64 tokens, 20 held out"


def test_adaptation(tmp_path, write):
    write("adaptation/metrics.csv", METRICS)
    expected = "held-out words: loss 9.75 to 9.25, accuracy 0.050 to 0.250"
    assert figures.adaptation(tmp_path) == expected


def test_fine_tuning(tmp_path, write):
    for name, median in (("classifier", 0.9), ("classifier_from_scratch", 0.7)):
        write(f"{name}/seeds.json", {"planned": 3, "settings": [{"median": median}]})
    write("task/train.tsv", "label\ttext\na\tred apple\nb\tblue sky\nc\tgreen tree\n")
    dev = "a\tapple\nb\tblue\na\tred\nc\tthe sky\na\tapple tree apple\n"
    write("task/dev.tsv", f"label\ttext\n{dev}")
    expected = (
        "dev accuracy 0.900, from scratch 0.700 (medians of 3); bag of words 0.800, majority 0.600"
    )
    assert figures.fine_tuning(tmp_path) == expected


def test_export_and_serving(tmp_path, write):
    write("saved_models/b/1/saved_model.pb", "x" * 1_400_000)
    write("saved_models/a/1/saved_model.pb", "x" * 1_200_000)
    write("saved_models/note.txt", "")
    assert figures.export(tmp_path) == "a, b: 3 MB"
    write("serving.json", {"largest_difference": 0.00000123})
    assert figures.serving(tmp_path) == "REST, gRPC and TF Hub agree with Keras to 1.2e-06"


METRICS = """step,split,masked_lm_loss,masked_lm_accuracy,accuracy
0,eval,9.75,0.05,
10,train,9.5,0.1,0.3
20,train,nan,0.2,0.4
20,eval,9.25,0.25,0.5
30,train,9.0,0.3,0.6
"""


def test_curves(tmp_path, write, monkeypatch):
    """Points without a number are left out; fine-tuning shows all seeds of both starts."""
    from matplotlib.figure import Figure

    for run in ("adaptation", *(f"{c}/seed-{n}" for c in figures.CLASSIFIERS for n in (0, 1))):
        write(f"{run}/metrics.csv", METRICS)
    saved = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, dpi: saved.append((figure, path)))
    figures.plot(tmp_path)
    [(figure, path)] = saved
    assert path == Path(tmp_path / "curves.png")
    loss, accuracy, labels = figure.axes
    assert [axes.get_title() for axes in (loss, accuracy)] == [
        "adaptation: masked_lm_loss", "adaptation: masked_lm_accuracy",
    ]  # fmt: skip
    assert {line.get_label(): line.get_xydata().tolist() for line in loss.lines} == {
        "train": [[10, 9.5], [30, 9.0]], "eval": [[0, 9.75], [20, 9.25]],
    }  # fmt: skip
    assert [text.get_text() for text in labels.get_legend().get_texts()] == [
        "shipped weights train", "shipped weights eval", "from scratch train", "from scratch eval",
    ]  # fmt: skip
    assert len(labels.lines) == 8
