"""Exact match, F1 and thresholds are those of SQuAD's official scripts."""

import json
from pathlib import Path

import pytest

from albert_tf.finetuning.tasks.squad_scores import (
    best_thresholds,
    exact_match,
    f1_v1,
    f1_v2,
    normalize_answer,
    scores_v1,
    scores_v2,
)
from data_pipeline.finetuning.squad_files import Answer, Question, SquadExamples, read_squad

SHARED = Path(__file__).parents[4].parent / "shared"
SQUAD = SHARED / "data" / "squad"
GOLDEN = SHARED / "golden" / "finetuning" / "squad"


def examples(**answers):
    questions = [
        Question(name, "?", 0, tuple(Answer(text, 0) for text in texts), not texts)
        for name, texts in answers.items()
    ]
    return SquadExamples("dev.json", ["text"], questions)


def test_normalizing():
    assert normalize_answer("The  U.S. of a-B\n") == "us of ab"
    assert normalize_answer("Anthem «theory» an1") == "anthem «theory» an1"  # ASCII alone.
    assert normalize_answer("a.the") == "athe"  # Punctuation goes first.
    assert normalize_answer("A") == ""


def test_pairs():
    assert exact_match("The cat!", "cat") == 1.0 and exact_match("cats", "cat") == 0.0
    assert f1_v1("the red cat", "cat food") == 0.5
    assert f1_v1("cat cat dog", "cat cat cat") == pytest.approx(2 / 3)
    assert f1_v1("dog", "cat food of mine") == 0.0
    assert f1_v1("one two three", "one") == 0.5
    assert f1_v1("the", "a") == 0.0 and f1_v2("the", "a") == 1.0
    assert f1_v2("", "cat") == f1_v2("cat", "") == 0.0 and f1_v2("red cat", "cat") > 0.6


def test_version_1():
    questions = examples(q1=["red cat", "cat"], q2=["dog"], q3=["bird"], q4=["fish"])
    found = scores_v1(questions, {"q1": "the cat", "q2": "dog food", "q3": "", "other": "x"})
    assert found == {"exact": 25.0, "f1": pytest.approx(100 * (1 + 2 / 3) / 4), "total": 4}


QUESTIONS = examples(q1=["cat"], q2=["red dog", "The"], q3=[], q4=[], q5=["the"], missing=["cat"])
PREDICTED = {"q1": "cat", "q2": "dog", "q3": "bird", "q4": "", "q5": "a"}


def test_version_2():
    found = scores_v2(QUESTIONS, PREDICTED)
    assert found == {
        "exact": pytest.approx(60.0),  # q1, q4, and q5, whose gold answer is none.
        "f1": pytest.approx(100 * (3 + 2 / 3) / 5),
        "total": 5,  # Without the question that is missing.
        "HasAns_exact": pytest.approx(200 / 3),
        "HasAns_f1": pytest.approx(100 * (2 + 2 / 3) / 3),
        "HasAns_total": 3,
        "NoAns_exact": 50.0,
        "NoAns_f1": 50.0,
        "NoAns_total": 2,
    }
    assert "NoAns_exact" not in scores_v2(examples(q1=["cat"]), {"q1": "cat"})
    assert "HasAns_exact" not in scores_v2(examples(q1=[]), {"q1": "cat"})


def test_thresholds():
    odds = {"q1": -2.0, "q2": -1.0, "q3": 0.5, "q4": 1.5, "q5": 2.5}
    found = best_thresholds(QUESTIONS, PREDICTED, odds)
    # Nothing answered 2; q1 3; q2 3 and 3 2/3; q3 a wrong answer; q4 is empty; q5 1 more again.
    assert found == (60.0, -2.0, pytest.approx(100 * (3 + 2 / 3) / 5), -1.0)


def test_to_answer_nothing_can_be_best():
    """The reference's threshold 0.0 would answer both; logits are below it."""
    questions = examples(q1=["cat"], q2=[], q3=[])
    predicted = {"q1": "dog", "q2": "x", "q3": "y"}
    odds = {"q1": -3.0, "q2": -5.0, "q3": -4.0}
    found = best_thresholds(questions, predicted, odds)
    assert found == (pytest.approx(200 / 3), -6.0, pytest.approx(200 / 3), -6.0)
    assert all(value > found.best_f1_thresh for value in odds.values())
    assert scores_v2(questions, dict.fromkeys(predicted, ""))["f1"] == pytest.approx(found.best_f1)


PUBLISHED = {
    "1.1_BERT": (86.206, 92.196), "1.1_SLQA": (81.949, 88.384), "1.1_r-net": (82.469, 88.478),
    "1.1_Match-LSTM": (67.635, 76.756), "1.1_Logistic": (40.142, 50.982),
    "v2.0_BERT": (78.742, 81.775), "v2.0_nlnet": (75.828, 78.778), "v2.0_BiDAF": (65.704, 67.876),
}  # fmt: skip


@pytest.mark.skipif(
    not SQUAD.exists(), reason=f"NOT compared with published scores: {SQUAD} is not there"
)
@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_published_systems_have_their_official_scores(version):
    questions = read_squad(str(SQUAD / f"dev-v{version}.rebuilt.json"))
    score = scores_v1 if version == "1.1" else scores_v2
    checked = 0
    for name, expected in PUBLISHED.items():
        if version not in name:
            continue
        (path,) = (SQUAD / "predictions").glob(f"{name}*")
        found = score(questions, json.loads(path.read_text("utf-8")))
        assert (round(found["exact"], 3), round(found["f1"], 3)) == expected, name
        checked += 1
    assert checked == {"1.1": 5, "2.0": 3}[version]


@pytest.mark.skipif(
    not GOLDEN.exists(), reason=f"NOT compared with the reference's answers: {GOLDEN} is not there"
)
@pytest.mark.parametrize("sizes", ["384_128_64", "96_32_16"])
@pytest.mark.parametrize("name", ["", "_two_models"])
def test_scores_of_version_2_are_the_official_script_s(sizes, name):
    folder = GOLDEN / f"post_dev_v2_{sizes}_lower"
    questions = read_squad(str(GOLDEN / "dev_v2.json"))

    def load(stem):
        return json.loads((folder / f"{stem}{name}.json").read_text("utf-8"))

    final = load("predictions")
    expected = load("scores")["official_final_predictions_without_na_prob"]
    # Without a file of odds the script takes 0 for each.
    zeros = best_thresholds(questions, final, dict.fromkeys(final, 0.0))
    assert {**scores_v2(questions, final), **zeros._asdict()} == pytest.approx(expected)
