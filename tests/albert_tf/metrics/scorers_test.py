"""The table of tasks' scores against the official definitions, degenerate cases included."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from albert_tf import metrics
from albert_tf.metrics.scorers import (
    SCORED_GLUE_TASKS,
    SCORERS,
    glue_score,
    glue_task_score,
    is_better,
    remarks,
)

GOLDEN = Path(__file__).parents[2] / "goldens" / "finetuning" / "metrics" / "glue.json"
GLUE = json.loads(GOLDEN.read_text(encoding="utf-8"))
MISMATCHED = "mnli-mm"


def scores_of(case: dict) -> dict[str, float | None]:
    task = "mnli" if case["task"] == MISMATCHED else case["task"]
    return SCORERS[task](case["labels"], case["predictions"])


@pytest.mark.parametrize("case", GLUE["cases"], ids=lambda case: case["task"])
def test_official_scores(case):
    names = {"matthews_correlation": "matthews_corrcoef"}
    expected = {names.get(name, name): value for name, value in case["scores"].items()}
    scores = scores_of(case)
    for name, value in expected.items():
        assert scores[name] == (None if value is None else pytest.approx(value, abs=1e-12))
    task = "mnli" if case["task"] == MISMATCHED else case["task"]
    score = case["glue_task_score"]
    assert glue_task_score(task, scores) == (score if score is None else pytest.approx(score))


def first_cases() -> dict[str, dict]:
    scores = {}
    for case in GLUE["cases"]:
        scores.setdefault(case["task"], scores_of(case))
    return scores


def test_glue_score():
    scores = first_cases()
    expected = GLUE["glue_average"]
    assert len(expected["task_scores"]) == len(SCORED_GLUE_TASKS)
    assert glue_score(scores, scores[MISMATCHED]) == pytest.approx(expected["average"], abs=1e-12)


def test_glue_score_of_undefined_and_missing_scores():
    scores = first_cases()
    undefined = {**scores, "sts-b": {"pearson": None, "spearman": 0.5}}
    assert glue_score(undefined, scores[MISMATCHED]) is None
    assert glue_score(scores, {"accuracy": None}) is None
    del scores["rte"], scores["qqp"]
    with pytest.raises(ValueError, match="missing: qqp, rte"):
        glue_score(scores, scores[MISMATCHED])


def test_keys_are_those_of_the_reference():
    keys = {task: scorer.key for task, scorer in SCORERS.items() if scorer.key != "accuracy"}
    assert keys == {
        "cola": "matthews_corrcoef",
        "sts-b": "pearson",
        "ax": "matthews_corrcoef",
        "regression": "pearson",
        "pairs": "spearman",
        "retrieval": "mean_reciprocal_rank",
        "tagging": "f1",
        "multi_label": "f1_micro",
    }
    assert set(SCORED_GLUE_TASKS) < set(SCORERS) and "ax" not in SCORED_GLUE_TASKS
    assert metrics.SCORERS is SCORERS


VALUES = ([0.0, 1.0, 2.0], [0.1, 1.1, 1.9])
CLASSES = ([0, 1, 1], [0, 1, 0])
NUMBERS = {"pearson", "spearman", "mean_squared_error"}
NAMES = {
    **{task: {"accuracy"} for task in ("sst-2", "mnli", "qnli", "rte", "wnli", "boolq", "copa")},
    **{task: {"accuracy", "f1"} for task in ("mrpc", "qqp")},
    **{task: {"accuracy", "matthews_corrcoef"} for task in ("cola", "ax")},
    **dict.fromkeys(("sts-b", "regression", "pairs"), NUMBERS),
    "retrieval": {"accuracy_at_1", "mean_reciprocal_rank"},
    "cb": {"accuracy", "f1_macro"},
    "tsv": {"accuracy", "f1_macro", "matthews_corrcoef"},
    "tagging": {"f1", "precision", "recall", "accuracy"},
    "multi_label": {"f1_micro", "f1_macro", "subset_accuracy"},
    "race": {"accuracy", "accuracy_middle", "accuracy_high"},
}


def test_every_task_has_its_scores():
    assert set(NAMES) == set(SCORERS)
    for task, scorer in SCORERS.items():
        examples = VALUES if "pearson" in NAMES[task] else CLASSES
        if task == "tagging":
            examples = ([["B-X", "O"]], [["B-X", "O"]])
        if task == "multi_label":
            examples = ([[0, 1], [1, 1]], [[0, 0], [1, 1]])
        groups = ["middle", "high", "high"] if task == "race" else None
        scores = scorer(*examples, groups)
        assert set(scores) == NAMES[task] and scorer.key in scores
        assert all(type(value) is float for value in scores.values())
        assert set(scorer.glue) <= set(scores)


def test_race_in_one_pass():
    labels, predictions = [3, 1, 0, 2, 2], [3, 0, 0, 2, 1]
    levels = ["middle", "high", "high", "middle", "high"]
    assert SCORERS["race"](labels, predictions, levels) == pytest.approx(
        {"accuracy": 3 / 5, "accuracy_middle": 1.0, "accuracy_high": 1 / 3}
    )
    scores = SCORERS["race"](labels, predictions, ["high"] * 5)
    assert scores == {"accuracy": 0.6, "accuracy_middle": None, "accuracy_high": 0.6}


@pytest.mark.parametrize("levels", [None, ["high"], ["low"] * 2])
def test_wrong_levels(levels):
    with pytest.raises(ValueError, match="one of the groups middle, high for each of 2"):
        SCORERS["race"]([1, 2], [1, 2], levels)


@pytest.mark.parametrize("labels, predictions", [([], []), ([1], [1, 0])])
def test_no_examples_and_other_lengths(labels, predictions):
    with pytest.raises(ValueError, match="as many predictions as labels"):
        SCORERS["rte"](labels, predictions)


def test_the_first_maximum_is_best():
    assert is_better(0.0, None) and is_better(0.5, 0.4) and is_better(-1.0, None)
    assert not is_better(0.5, 0.5) and not is_better(0.4, 0.5)
    for undefined in (None, math.nan, math.inf):
        assert is_better(undefined, None) is False and not is_better(undefined, 0.1)


def test_remarks_where_no_answer_is_the_only_right_one():
    assert remarks(None, ["a", "b"]) == remarks(None, ["a"]) == []
    assert remarks([["a"], ["b"]], [["a"], ["c"]]) == []  # Tags of sentences are lists.
    (sentence,) = remarks(None, ["", ""])
    assert sentence.startswith("Every prediction is '': the model does not distinguish examples.")


def test_remarks():
    assert remarks([0, 1, 1], [0, 1, 0]) == []
    assert remarks([1, 1], [1, 1]) == []  # All labels are alike: nothing is said.
    (sentence,) = remarks([0, 1, 1, 1], [1, 1, 1, 1])
    assert sentence.startswith("Every prediction is 1, which is right for 75.0%: ")
    (sentence,) = remarks([0.5, 1.0], [2.5, 2.5])
    assert sentence.startswith("Every prediction is 2.5: correlations are undefined.")
    (sentence,) = remarks([0.5, 1.0], [2.5, math.nan])
    assert sentence.startswith("Some predictions are not finite numbers")
    assert remarks([("O", "B-X"), ("O",)], [("O", "O"), ("B-X",)]) == []
    (sentence,) = remarks([("O", "B-X"), ("O", "O")], [("O", "O"), ("O", "O")])
    assert sentence.startswith("Every prediction is 'O', which is right for 75.0%: ")
