"""SQuAD's official scores, as the evaluation scripts of versions 1.1 and 2.0 compute them."""

from __future__ import annotations

import collections
import re
import string
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from data_pipeline.finetuning.squad_files import Question, SquadExamples

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """A text without case, ASCII punctuation and articles: "The  U.S. of a-B" -> "us of ab"."""
    # In the official script's order: without its hyphen, "a-b" is one word and has no article.
    text = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(gold: str, predicted: str) -> float:
    """1.0 if two answers are equal after `normalize_answer`, else 0.0."""
    return float(normalize_answer(gold) == normalize_answer(predicted))


def f1_v1(gold: str, predicted: str) -> float:
    """F1 of the words two answers have in common: "the red cat", "cat food" -> 0.5.

    As in version 1.1: 0.0 if they have no word in common, even if neither has a word.
    """
    gold_words = normalize_answer(gold).split()
    words = normalize_answer(predicted).split()
    common = sum((collections.Counter(gold_words) & collections.Counter(words)).values())
    if not common:
        return 0.0
    precision, recall = common / len(words), common / len(gold_words)
    return 2 * precision * recall / (precision + recall)


def f1_v2(gold: str, predicted: str) -> float:
    """`f1_v1`, but 1.0 if neither answer has a word, as in version 2.0."""
    if not normalize_answer(gold) and not normalize_answer(predicted):
        return 1.0
    return f1_v1(gold, predicted)


def _best(metric: Callable[[str, str], float], golds: Iterable[str], predicted: str) -> float:
    """The metric with the gold answer that fits best."""
    return max(metric(gold, predicted) for gold in golds)


def _percent(values: Iterable[float], total: int) -> float:
    return 100.0 * sum(values) / total


def scores_v1(examples: SquadExamples, predictions: Mapping[str, str]) -> dict[str, float]:
    """The scores of version 1.1: every question has an answer, and a question without a prediction
    counts as wrong.

    `exact` and `f1` are in percent, `total` is the number of questions.
    """
    exact, f1 = [], []
    for question in examples.questions:
        golds = [answer.text for answer in question.answers]
        if question.id in predictions:
            exact.append(_best(exact_match, golds, predictions[question.id]))
            f1.append(_best(f1_v1, golds, predictions[question.id]))
    total = len(examples.questions)
    return {"exact": _percent(exact, total), "f1": _percent(f1, total), "total": total}


class Thresholds(NamedTuple):
    """The null odds up to which questions should be answered, and the scores reached with them.

    A question is answered if its null odds are at most `best_exact_thresh` or `best_f1_thresh`;
    `best_exact` and `best_f1` are in percent.
    """

    best_exact: float
    best_exact_thresh: float
    best_f1: float
    best_f1_thresh: float


class _Scored(NamedTuple):
    """Every question that was predicted, with its scores by id."""

    questions: list[Question]
    exact: dict[str, float]
    f1: dict[str, float]


def _score_v2(examples: SquadExamples, predictions: Mapping[str, str]) -> _Scored:
    questions = [question for question in examples.questions if question.id in predictions]
    exact, f1 = {}, {}
    for question in questions:
        # A gold answer such as "The" does not count; without any, "" is right.
        golds = [a.text for a in question.answers if normalize_answer(a.text)] or [""]
        exact[question.id] = _best(exact_match, golds, predictions[question.id])
        f1[question.id] = _best(f1_v2, golds, predictions[question.id])
    return _Scored(questions, exact, f1)


def scores_v2(examples: SquadExamples, predictions: Mapping[str, str]) -> dict[str, float]:
    """The scores of version 2.0, in which a question may have no answer: the prediction "".

    `exact` and `f1` are in percent, with `total`; the same with HasAns_ and NoAns_ for the
    questions with and without answers, if there are any. A question that is not predicted is left
    out, as the official script does.
    """
    scored = _score_v2(examples, predictions)
    results: dict[str, float] = {}
    answerable = [question.id for question in scored.questions if question.answers]
    others = [question.id for question in scored.questions if not question.answers]
    for prefix, ids in (("", answerable + others), ("HasAns_", answerable), ("NoAns_", others)):
        if ids:
            results[f"{prefix}exact"] = _percent((scored.exact[name] for name in ids), len(ids))
            results[f"{prefix}f1"] = _percent((scored.f1[name] for name in ids), len(ids))
            results[f"{prefix}total"] = len(ids)
    return results


def best_thresholds(
    examples: SquadExamples, predictions: Mapping[str, str], odds: Mapping[str, float]
) -> Thresholds:
    """The thresholds of the null odds with the best scores, as the official script finds them.

    `predictions` has a text for every question, as if each had an answer.
    """
    scored = _score_v2(examples, predictions)
    ordered = sorted(scored.questions, key=lambda question: odds[question.id])
    best = [_best_threshold(ordered, s, predictions, odds) for s in (scored.exact, scored.f1)]
    return Thresholds(*best[0], *best[1])


def _best_threshold(
    ordered: list[Question],
    scores: Mapping[str, float],
    predictions: Mapping[str, str],
    odds: Mapping[str, float],
) -> tuple[float, float]:
    """The best score in percent and the threshold with which it is reached.

    Starts with no question answered, where all questions without answers are right, then answers
    one question after the other in the order of their odds; the first of equal scores wins.
    """
    current = float(sum(not question.answers for question in ordered))
    best = current
    # The official script gives 0.0 if it is best to answer nothing. That is only right for
    # probabilities, which are never below 0.
    threshold = odds[ordered[0].id] - 1.0
    for question in ordered:
        if question.answers:
            current += scores[question.id]
        elif predictions[question.id]:
            # The question loses the point that it had while it was not answered.
            current -= 1.0
        # A threshold cannot separate questions with equal odds, but the official script tries to.
        if current > best:
            best, threshold = current, odds[question.id]
    return 100.0 * best / len(ordered), threshold
