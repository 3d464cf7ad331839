"""The best candidates become texts, null odds and predictions, as in google-research/albert."""

import json
from pathlib import Path

import numpy as np
import pytest

from albert_tf.errors import UserError
from albert_tf.finetuning.tasks.squad_answers import (
    ScoredAnswer,
    answer_text,
    answer_texts,
    best_answers,
    decision_threshold,
    null_odds,
)
from albert_tf.finetuning.tasks.squad_candidates import (
    AnswerSettings,
    Candidates,
    candidates_from_beams,
    candidates_from_logits,
)
from albert_tf.finetuning.tasks.squad_scores import best_thresholds, scores_v1, scores_v2
from data_pipeline.finetuning.squad_files import Question, SquadExamples, read_squad
from data_pipeline.finetuning.squad_windows import WindowSettings, make_windows
from data_pipeline.tokenizers.normalization import is_mark
from data_pipeline.tokenizers.sentencepiece import SentencePieceTokenizer
from data_pipeline.tokenizers.wordpiece import WordPieceTokenizer

VOCABULARY = Path(__file__).parents[3] / "goldens" / "wordpiece" / "vocab.txt"
SHARED = Path(__file__).parents[4].parent / "shared"
GOLDEN = SHARED / "golden" / "finetuning" / "squad"
VOCAB_FILE = str(SHARED / "data" / "spm" / "30k-clean.model")
needs_golden = pytest.mark.skipif(
    not GOLDEN.exists(), reason=f"NOT compared with the reference's answers: {GOLDEN} is not there"
)
# The question that the reference drops; here it has a window and an answer.
DROPPED = "edge-shared-5-0"


@pytest.fixture(scope="module")
def windows():
    """Two windows of the first question, from piece 0 and 2; one of the second; no one of the last,
    of whose context nothing is left.
    """
    questions = [Question(f"q{i + 1}", "who", i, (), False) for i in range(3)]
    contexts = ["The 北京中国 is in", "中国", "\u0301"]
    examples = SquadExamples("dev.json", contexts, questions)
    tokenizer = WordPieceTokenizer(str(VOCABULARY))
    return make_windows(examples, tokenizer, WindowSettings(9, 2, 3))


def candidates(*rows):
    kinds = (np.int32,) * 3 + (np.float64,) * 2
    return Candidates(*(np.array(column, kind) for column, kind in zip(zip(*rows), kinds)))


SCORES = candidates(
    (0, 0, 0, 1.0, 1.0),
    (0, 1, 2, 2.0, 1.0),
    (0, 3, 3, 1.0, 1.0),
    (1, 5, 6, 2.5, 2.5),
    (2, 0, 1, -1.0, -2.0),
)


def test_texts_of_the_original_context(windows):
    assert answer_text(windows, 0, 0, 2) == "The 北京"
    assert answer_text(windows, 1, 5, 6) == "is in"


@pytest.mark.parametrize(
    "context, expected",
    [
        ("the\u0301 a", "the\u0301"),
        ("the\u0301\u0337", "the\u0301\u0337"),
        ("the \u0301a", "the"),
        ("th\u00e9 a", "th\u00e9"),
    ],
)
def test_marks_of_the_last_letter_belong_to_an_answer(context, expected):
    asked = SquadExamples("here", [context], [Question("q", "who", 0, (), False)])
    tokenizer = WordPieceTokenizer(str(VOCABULARY))
    assert answer_text(make_windows(asked, tokenizer, WindowSettings(9, 2, 3)), 0, 0, 0) == expected


def test_best_first(windows):
    found = best_answers(windows, [SCORES])
    assert list(found) == ["q1", "q2", "q3"]
    assert [answer.text for answer in found["q1"]] == ["is in", "北京", "The", "中"]
    sums = np.array([5.0, 3.0, 2.0, 2.0])
    expected = np.exp(sums) / np.exp(sums).sum()
    np.testing.assert_allclose([answer.probability for answer in found["q1"]], expected)
    assert found["q2"] == [ScoredAnswer("中国", 1.0, -1.0, -2.0)]
    assert found["q3"] == [ScoredAnswer("", 1.0, -1e6, -1e6)]  # Nothing to answer with.


def test_a_text_is_kept_once_and_so_many_of_them(windows):
    same = candidates((0, 1, 1, 3.0, 0.0), (0, 0, 0, 2.0, 0.0), (1, 1, 1, 9.0, 0.0))
    found = best_answers(windows, [same])["q1"]
    assert [(answer.text, answer.start_log_prob) for answer in found] == [("北", 9.0), ("The", 2.0)]
    found = best_answers(windows, [SCORES], AnswerSettings(n_best_size=2))["q1"]
    assert [answer.text for answer in found] == ["is in", "北京"]
    assert sum(answer.probability for answer in found) == pytest.approx(1.0)


def test_several_models_are_averaged(windows):
    other = candidates((0, 1, 2, 8.0, 9.0), (0, 3, 3, 0.0, 0.0))
    found = best_answers(windows, [SCORES, other])["q1"]
    assert found[0][0::2] == ("北京", 5.0) and found[0].end_log_prob == 5.0
    assert found[-1][0::2] == ("中", 0.5)


def test_scores_far_from_zero_do_not_overflow(windows):
    found = best_answers(windows, [candidates((0, 0, 0, 1e4, 1e4), (0, 1, 1, 1e4, 1e4 - 1))])["q1"]
    assert found[0].probability == pytest.approx(1 / (1 + np.exp(-1)))


def test_null_odds_are_the_lowest_of_the_windows(windows):
    logits = np.array([0.5, -1.5, 3.0], np.float32), np.array([-0.5, 2.0, 1.0], np.float32)
    assert null_odds(windows, logits[:1]) == {"q1": -1.5, "q2": 3.0, "q3": 1e6}
    assert null_odds(windows, logits) == {"q1": -1.0, "q2": 2.0, "q3": 1e6}
    with pytest.raises(UserError, match=r"shape \(3,\) for the 3 windows of dev.json; .*\(2,\)"):
        null_odds(windows, [logits[0][:2]])


def test_a_question_at_the_threshold_is_answered(windows):
    answers = best_answers(windows, [SCORES])
    odds = {"q1": -1.5, "q2": 3.0, "q3": 1e6}
    assert answer_texts(answers) == {"q1": "is in", "q2": "中国", "q3": ""}
    assert answer_texts(answers, odds) == answer_texts(answers, None, 0.0) == answer_texts(answers)
    assert answer_texts(answers, odds, -1.5) == {"q1": "is in", "q2": "", "q3": ""}
    assert answer_texts(answers, odds, -1.6) == {"q1": "", "q2": "", "q3": ""}


def test_a_threshold_between_two_questions():
    odds = {"q1": 1.0, "q2": 2.0, "q3": 2.5, "q4": 8.5, "q5": 1e6}
    assert decision_threshold(odds, 2.0) == 2.25
    assert decision_threshold(odds, 0.0) == 0.5
    assert decision_threshold(odds, 2.5) == 5.5
    assert decision_threshold(odds, 8.5) == 9.5


def golden_windows(version, sizes):
    tokenizer = SentencePieceTokenizer(VOCAB_FILE)
    examples = read_squad(str(GOLDEN / f"dev_{version}.json"))
    return make_windows(examples, tokenizer, WindowSettings(*map(int, sizes.split("_"))))


def load(folder, name):
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def outputs_of(windows, folder):
    """The golden outputs, with zeros for the windows that the reference does not have."""
    rows = [row for row in range(len(windows)) if windows.question_of(row).id != DROPPED]
    found = {}
    with np.load(folder / "logits.npz") as arrays:
        for name, values in arrays.items():
            found[name] = np.zeros((len(windows), *values.shape[1:]), values.dtype)
            found[name][rows] = values
    return found


def check_answers(answers, golden):
    """Equal texts, probabilities and scores; "empty" is "" here, and marks of a text's last letter,
    which the reference leaves out, belong to it.
    """
    assert set(answers) == set(golden)
    for name in set(golden) - {DROPPED}:
        found, expected = answers[name], golden[name]
        if expected[0]["text"] == "empty" and len(expected) == 1:
            assert [answer.text for answer in found] == [""]
            continue
        for answer, golden_answer in zip(found, expected, strict=True):
            assert answer.text.startswith(golden_answer["text"])
            assert all(map(is_mark, answer.text.removeprefix(golden_answer["text"])))
        for field in ("probability", "start_log_prob", "end_log_prob"):
            np.testing.assert_allclose(
                [getattr(answer, field) for answer in found],
                [answer[field] for answer in expected],
                rtol=1e-12,
            )


@needs_golden
@pytest.mark.parametrize("sizes", ["384_128_64", "96_32_16"])
@pytest.mark.parametrize("name, settings, models", [
    ("20_30", (20, 30), [""]),
    ("5_8", (5, 8), [""]),
    ("two_models", (20, 30), ["", "_2"]),
])  # fmt: skip
def test_answers_of_version_1_are_the_reference_s(sizes, name, settings, models):
    windows, settings = golden_windows("v1", sizes), AnswerSettings(*settings)
    folder = GOLDEN / f"post_dev_v1_{sizes}_lower"
    outputs = outputs_of(windows, folder)
    proposed = [
        candidates_from_logits(
            windows, outputs[f"start_logits{model}"], outputs[f"end_logits{model}"], settings
        )
        for model in models
    ]
    answers = best_answers(windows, proposed, settings)
    check_answers(answers, load(folder, f"nbest_{name}"))
    scores = scores_v1(windows.examples, answer_texts(answers))
    expected = load(folder, f"scores_{name}")["reference"]
    assert scores["exact"] == pytest.approx(expected["exact_match"], abs=1e-9)
    assert scores["f1"] == pytest.approx(expected["f1"], abs=1e-9)


@needs_golden
@pytest.mark.parametrize("sizes", ["384_128_64", "96_32_16"])
@pytest.mark.parametrize("name, models", [("", [""]), ("_two_models", ["", "_2"])])
def test_answers_of_version_2_are_the_reference_s(sizes, name, models):
    windows = golden_windows("v2", sizes)
    folder = GOLDEN / f"post_dev_v2_{sizes}_lower"
    outputs = outputs_of(windows, folder)
    fields = ("start_top_index", "start_top_log_probs", "end_top_index", "end_top_log_probs")
    proposed = [
        candidates_from_beams(windows, {field: outputs[field + model] for field in fields})
        for model in models
    ]
    answers = best_answers(windows, proposed)
    check_answers(answers, load(folder, f"nbest{name}"))
    odds = null_odds(windows, [outputs[f"cls_logits{model}"] for model in models])
    golden_odds = load(folder, f"null_odds{name}")
    assert golden_odds.pop(DROPPED) == 1e6
    assert {name: value for name, value in odds.items() if name != DROPPED} == golden_odds
    # Predictions with the threshold reach its score: the reference's miss one question.
    everything = answer_texts(answers)
    found = best_thresholds(windows.examples, everything, odds)
    expected = load(folder, f"scores{name}")
    official = expected["official_all_answered_with_null_odds_threshold_best_f1"]
    for key, value in found._asdict().items():
        assert value == pytest.approx(official[key], abs=1e-9)
    final = scores_v2(windows.examples, answer_texts(answers, odds, found.best_f1_thresh))
    assert final["f1"] == pytest.approx(found.best_f1, abs=1e-9)
    assert final["f1"] > expected["reference_final"]["f1"]
    for key in final:
        assert final[key] == pytest.approx(official[key], abs=1e-9)
