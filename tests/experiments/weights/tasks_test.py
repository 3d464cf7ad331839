"""Tasks: classes as numbers, a part of the examples, scores in percent."""

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
