"""Answers of two paths are compared by question; both commands are replaced."""

from __future__ import annotations

import json
import types
from pathlib import Path

import pytest

from benchmarks import served_answers
from data_pipeline.errors import UserError

CONTEXT = "Ann sells figs in Rome."
ANSWERS = {"who": "Ann", "what": "figs", "where": "Rome"}


@pytest.fixture
def options(tmp_path, monkeypatch) -> types.SimpleNamespace:
    asked = [
        {
            "id": name,
            "question": f"{name}?",
            "answers": [{"text": text, "answer_start": CONTEXT.index(text)}],
        }
        for name, text in ANSWERS.items()
    ]
    content = {"data": [{"paragraphs": [{"context": CONTEXT, "qas": asked}]}]}
    (tmp_path / "dev.json").write_text(json.dumps(content))
    (tmp_path / "model").mkdir()
    given = types.SimpleNamespace(
        model_dir=str(tmp_path / "model"), squad=str(tmp_path / "dev.json"), batch_size=2,
        output=str(tmp_path / "out"),
    )  # fmt: skip
    monkeypatch.setattr(served_answers, "FLAGS", given)
    return given


def test_differences_are_counted_and_ties_told_apart(options, monkeypatch, capsys):
    """The graph answers one question otherwise, and another one as likely as the first answer."""
    monkeypatch.setattr(served_answers.native, "read_metadata", lambda folder: {"task": "span"})
    best = {
        "who": [
            {"text": "Ann", "probability": 0.5},
            {"text": "Ann sells", "probability": 0.499999},
        ],
        "what": [{"text": "figs", "probability": 0.9}, {"text": "Rome", "probability": 0.1}],
        "where": [{"text": "Rome", "probability": 0.9}],
    }
    graph = ["Ann sells", "Rome", "Rome"]

    def run_command(program, *flags):
        named = dict(flag.lstrip("-").split("=", 1) for flag in flags)
        if program == "albert_tf.run_finetuning":
            folder = Path(named["output_dir"]) / "predictions"
            folder.mkdir(parents=True)
            (folder / "squad1.1_predict_nbest_predictions.json").write_text(json.dumps(best))
        elif program == "export.predict":
            rows = list(map(json.loads, Path(named["input_file"]).read_text().splitlines()))
            assert [row["question"] for row in rows] == ["who?", "what?", "where?"]
            assert {row["context"] for row in rows} == {CONTEXT}
            answered = "".join(json.dumps({"answer": text}) + "\n" for text in graph)
            Path(named["output_file"]).write_text(answered)
        return 1.0

    monkeypatch.setattr(served_answers, "run_command", run_command)
    served_answers.main()
    shown = capsys.readouterr().out
    assert "2 answers differ, 1 of them ties within 1e-05." in shown
    assert "what: 'figs', exported 'Rome'" in shown and "who: " not in shown
    table = (Path(options.output) / "served_answers.csv").read_text().splitlines()
    assert table[1].startswith("fine-tuning,3,100.0") and table[2].startswith(
        "exported graph,3,55."
    )


def test_a_model_of_another_task(options, monkeypatch):
    metadata = {"task": "classification"}
    monkeypatch.setattr(served_answers.native, "read_metadata", lambda folder: metadata)
    with pytest.raises(UserError, match="is a model of classification; expected one of SQuAD"):
        served_answers.main()


def test_a_command_that_fails():
    with pytest.raises(UserError, match=r"(?s)choice_that_is_none failed:.*No module"):
        served_answers.run_command("benchmarks.choice_that_is_none")
