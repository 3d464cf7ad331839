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
    """The graph has two answers in another order, as likely as each other, and one of its own."""
    monkeypatch.setattr(served_answers.native, "read_metadata", lambda folder: {"task": "span_v2"})
    best = {
        "who": [
            {"text": "Ann", "probability": 0.5},
            {"text": "Ann sells", "probability": 0.499999},
        ],
        "what": [{"text": "figs", "probability": 0.9}, {"text": "Rome", "probability": 0.1}],
        "where": [{"text": "Rome", "probability": 0.9}],
    }
    graph = [["Ann sells", "Ann"], ["figs", "sells"], []]
    final = {"who": "Ann sells", "what": "", "where": ""}
    odds = {"who": 0.5, "what": 0.25, "where": 0.5}

    def run_command(program, *flags):
        named = dict(flag.lstrip("-").split("=", 1) for flag in flags)
        if program == "albert_tf.run_finetuning":
            folder = Path(named["output_dir"]) / "predictions"
            folder.mkdir(parents=True)
            written = {"nbest_predictions": best, "predictions": final, "null_odds": odds}
            for name, content in written.items():
                (folder / f"squad2.0_predict_{name}.json").write_text(json.dumps(content))
        elif program == "export.predict":
            rows = list(map(json.loads, Path(named["input_file"]).read_text().splitlines()))
            assert [row["question"] for row in rows] == ["who?", "what?", "where?"]
            assert {row["context"] for row in rows} == {CONTEXT}
            answered = (
                {
                    "answers": [*texts, ""], "num_answers": len(texts), "null_score": 0.5,
                    "answer": "".join(texts[:1]), "probabilities": [0.5, 0.499999],
                }
                for texts in graph
            )  # fmt: skip
            Path(named["output_file"]).write_text("\n".join(map(json.dumps, answered)))
        return 1.0

    monkeypatch.setattr(served_answers, "run_command", run_command)
    served_answers.main()
    shown = capsys.readouterr().out
    assert "what: ['figs', 'Rome'], exported ['figs', 'sells']" in shown and "who: " not in shown
    assert "where: ['Rome'], exported []" in shown, "fewer answers are others"
    table = (Path(options.output) / "served_answers_squad2.0.csv").read_text().splitlines()
    assert table[1] == "3,100.0,55.556,3,1,1,4.0e-01,2.5e-01,1.0,1.0"


def test_a_model_of_another_task(options, monkeypatch):
    metadata = {"task": "classification"}
    monkeypatch.setattr(served_answers.native, "read_metadata", lambda folder: metadata)
    with pytest.raises(UserError, match="is a model of classification; expected one of SQuAD"):
        served_answers.main()


def test_a_command_that_fails():
    with pytest.raises(UserError, match=r"(?s)choice_that_is_none failed:.*No module"):
        served_answers.run_command("benchmarks.choice_that_is_none")
