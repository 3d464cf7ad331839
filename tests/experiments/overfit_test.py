"""Labels in files of real examples, and the score of predictions; a tiny run of the program."""

from __future__ import annotations

import json
import random
import types
from pathlib import Path

import pytest

from benchmarks.finetuning_files import Lines
from data_pipeline.errors import UserError
from experiments import overfit
from experiments.overfit_tasks import REAL_TASKS, Column, Field, Letters, Spans, Tags

VOCABULARY = Path(__file__).parents[1] / "goldens" / "wordpiece" / "vocab.txt"
LABELED = [
    (Column(1), ["a\t0\tx", "b\t1\ty\r"], ["0", "1"], ["a\t1\tx", "b\t0\ty"]),
    (
        *(Field("label", ("no", "yes")), ['{"label": 0}', '{"label": 1}'], ["no", "yes"]),
        ['{"label": 1}', '{"label": 0}'],
    ),
    (
        *(Field("answer", ("false", "true")), ['{"answer": false}', '{"answer": true}']),
        *(["false", "true"], ['{"answer": true}', '{"answer": false}']),
    ),
    (Tags(), [["The\tO"], ["end\tB-x"]], ["O", "B-x"], [["The\tB-x"], ["end\tO"]]),
    (Letters(), [{"answers": ["A", "D"]}], ["A", "D"], [{"answers": ["D", "A"]}]),
]


@pytest.mark.parametrize("labels, records, values, turned", LABELED)
def test_labels_are_found_and_replaced(labels, records, values, turned):
    assert labels.values(records) == values
    assert labels.replace(records, values[::-1]) == turned
    assert sorted(labels.values(labels.shuffled(records, random.Random(0)))) == sorted(values)


def test_shuffled_answers_are_words_of_the_right_context():
    asked = {"id": "q", "answers": [{"text": "one two", "answer_start": 0}], "is_impossible": False}
    none = {"id": "n", "answers": [], "is_impossible": True}
    records = [{"context": "one two three", "qas": [asked, none]}]
    assert Spans().values(records) == [["one two"], []]
    (found,) = Spans().shuffled(records, random.Random(1))
    for question in found["qas"]:
        assert question["is_impossible"] == (not question["answers"])
        for answer in question["answers"]:
            start = answer["answer_start"]
            assert found["context"][start:].startswith(answer["text"])
    assert sum(question["is_impossible"] for question in found["qas"]) == 1


@pytest.mark.parametrize(
    "task, right, answers, expected",
    [
        ("sst-2", ["0", "1", "1", "1"], ["0", "1", "1", "0"], 0.75),
        ("cola", ["0", "1"], ["1", "0"], -1.0),
        ("sts-b", ["1", "2.0", "3"], ["10", "20", "30"], 1.0),
        ("squad2.0", [["the cat", "dog"], []], ["Cat.", ""], 1.0),
        ("squad2.0", [["cat"], []], ["", "cat"], 0.0),
        ("tagging", ["O", "B-x", "O", "B-y"], ["O", "B-x", "O", "O"], 2 / 3),
    ],
)
def test_scores(task, right, answers, expected):
    assert overfit.score(REAL_TASKS[task], right, answers) == pytest.approx(expected)


def test_what_is_learned_is_scored_in_another_order(tmp_path, monkeypatch):
    """The commands are replaced: training keeps the labels, and prediction looks texts up."""
    (tmp_path / "superglue" / "COPA").mkdir(parents=True)
    lines = [json.dumps({"premise": f"p{n}", "label": n % 2}) for n in range(8)]
    Lines().write(lines, tmp_path / "superglue" / "COPA" / "train.jsonl")
    known: dict[str, int] = {}

    def run_program(module, *command, log):
        folder = next(Path(c.split("=")[1]) for c in command if c.startswith("--data_dir"))
        run = next(Path(c.split("=")[1]) for c in command if c.startswith("--output_dir"))
        (run / "predictions").mkdir(parents=True, exist_ok=True)
        if "--mode=predict" not in command:
            read = (folder / "COPA" / "train.jsonl").read_text().splitlines()
            known.update({row["premise"]: row["label"] for row in map(json.loads, read)})
            return
        asked = [json.loads(x) for x in (folder / "COPA" / "dev.jsonl").read_text().splitlines()]
        assert [row["premise"] for row in asked] != sorted(row["premise"] for row in asked)
        table = ["prediction", *(f"choice{1 + known[row['premise']]}" for row in asked)]
        (run / "predictions" / "copa_dev.tsv").write_text("\n".join(table))

    given = types.SimpleNamespace(
        data_dir=str(tmp_path), vocab_file=str(VOCABULARY), examples=8, steps=1, learning_rate=1
    )
    monkeypatch.setattr(overfit, "FLAGS", given)
    monkeypatch.setattr(overfit, "run_program", run_program)
    real = REAL_TASKS["copa"]
    assert overfit.learn(real, False, tmp_path / "config", tmp_path) == 1
    assert overfit.learn(real, True, tmp_path / "config", tmp_path) < 1
    assert overfit.by_chance(real, ["a", "a", "b", "b"]) == 0.5


def test_ax_wants_the_model_of_mnli(tmp_path, monkeypatch):
    source = tmp_path / REAL_TASKS["ax"].source
    source.parent.mkdir(parents=True)
    Lines().write([f"neutral\tp{n}\th{n}" for n in range(8)], source)
    monkeypatch.setattr(overfit, "FLAGS", types.SimpleNamespace(data_dir=tmp_path, examples=6))
    with pytest.raises(UserError, match="ax is answered by the model of mnli.*run --tasks=mnli"):
        overfit.learn(REAL_TASKS["ax"], False, tmp_path / "config", tmp_path / "out")
