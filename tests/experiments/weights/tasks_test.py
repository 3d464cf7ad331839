"""Tasks: classes as numbers, a part of the examples, scores in percent."""

import json

import numpy as np
import pytest

from experiments.weights.tasks import WEIGHTS_TASKS


def test_a_part_is_drawn_once(tmp_path):
    folder = tmp_path / "SST-2"
    folder.mkdir()
    rows = "".join(f"text {number}\t{number % 2}\n" for number in range(20))
    (folder / "train.tsv").write_text(f"sentence\tlabel\n{rows}")
    task = WEIGHTS_TASKS["sst-2"]
    part = task.read(str(tmp_path), "train", 5).examples
    assert part == task.read(str(tmp_path), "train", 5).examples and len(part) == 5
    places = [int(example.text_a.split()[1]) for example in part]
    assert places == sorted(set(places)) != [0, 1, 2, 3, 4]
    assert len(task.read(str(tmp_path), "train", 50)) == 20


def test_scores_are_in_percent():
    assert WEIGHTS_TASKS["rte"].numbers(["not_entailment", "entailment"]).tolist() == [1, 0]
    numbers = WEIGHTS_TASKS["sts-b"].numbers(["1.5", 2.0, 4])
    assert numbers.tolist() == [1.5, 2.0, 4.0]
    assert WEIGHTS_TASKS["sts-b"].score(numbers, np.array([0.1, 0.3, 0.2])) == pytest.approx(50)
    assert WEIGHTS_TASKS["cola"].score(np.array([0, 1]), np.array([1, 1])) == 0
    assert WEIGHTS_TASKS["mrpc"].score(np.array([0, 1]), np.array([0, 1])) == 100


def test_answers_of_race_and_squad(tmp_path):
    race = tmp_path / "dev" / "middle"
    race.mkdir(parents=True)
    (tmp_path / "dev" / "high").mkdir()
    passage = {"id": "middle1.txt", "article": "A cat sat.", "questions": ["Who?", "Where?"]}
    passage |= {"options": [["a dog", "a cat", "a mat", "none"]] * 2, "answers": ["B", "D"]}
    for level in ("middle", "high"):
        (tmp_path / "dev" / level / "1.txt").write_text(
            json.dumps({**passage, "id": f"{level}1.txt"})
        )
    task = WEIGHTS_TASKS["race"]
    assert task.gold(task.read(str(tmp_path), "dev")).tolist() == [1, 3, 1, 3]

    questions = [
        {"id": str(number), "question": "Who sat?", "answers": [{"text": t, "answer_start": s}]}
        for number, (t, s) in enumerate((("A cat", 0), ("cat", 2)))
    ]
    paragraphs = [{"context": "A cat sat.", "qas": questions}]
    squad = {"version": "1.1", "data": [{"title": "Cats", "paragraphs": paragraphs}]}
    (tmp_path / "dev-v1.1.json").write_text(json.dumps(squad))
    (tmp_path / "predictions").mkdir()
    found = tmp_path / "predictions" / "squad1.1_dev_predictions.json"
    found.write_text(json.dumps({"0": "cat", "1": "the cat sat"}))
    task = WEIGHTS_TASKS["squad1.1"]
    dev = task.read(str(tmp_path), "dev")
    answers = task.numbers(task.answers(str(tmp_path), dev))
    assert answers.tolist() == pytest.approx([1, 2 / 3])
    assert task.score(task.gold(dev), answers) == pytest.approx(500 / 6)
