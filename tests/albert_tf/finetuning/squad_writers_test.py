"""Answers are written as the official scripts read them."""

import json

from albert_tf.finetuning.squad_answers import ScoredAnswer
from albert_tf.finetuning.squad_writers import write_answers

BEST = {"q1": [ScoredAnswer("北京", 0.75, 1.5, 2.5), ScoredAnswer("a", 0.25, 1.0, 0.5)]}


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def test_files_of_both_versions(tmp_path):
    path = str(tmp_path / "squad2.0_dev")
    paths = write_answers(path, {"q1": ""}, BEST, {"q1": 1.25})
    endings = ("predictions", "nbest_predictions", "null_odds")
    assert paths == [f"{path}_{ending}.json" for ending in endings]
    texts, best, odds = map(read, paths)
    assert texts == {"q1": ""} and odds == {"q1": 1.25}
    first = {"text": "北京", "probability": 0.75, "start_log_prob": 1.5, "end_log_prob": 2.5}
    assert best["q1"][0] == first and len(best["q1"]) == 2
    assert write_answers(path, {"q1": "北京"}, BEST) == paths[:2]
    assert read(paths[0]) == {"q1": "北京"}
