"""Spans of tags and their scores: equal to those of seqeval 1.2.2; other ways to write tags."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from albert_tf.metrics.tagging import Span, conlleval_tags, span_scores, spans

GOLDENS = Path(__file__).parents[2] / "goldens" / "finetuning" / "metrics"
CASES = json.loads((GOLDENS / "seqeval.json").read_text(encoding="utf-8"))
SPELLINGS = json.loads((GOLDENS / "seqeval_spellings.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "tags, expected",
    [
        ("", []),
        ("S-A I-A E-A E-A S-A", [("A", 0, 0), ("A", 1, 2), ("A", 3, 3), ("A", 4, 4)]),
        ("B I O", [("_", 0, 1)]),
        ("B-new-york I-new-york", [("new-york", 0, 1)]),
    ],
)
def test_spans(tags, expected):
    assert spans(tags.split()) == expected
    assert all(isinstance(span, Span) for span in spans(tags.split()))


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_equal_to_seqeval(case):
    found = [[list(span) for span in spans(tags)] for tags in case["labels"]]
    assert found == case["spans"]
    scores = span_scores(case["labels"], case["predictions"])
    for name in ("f1", "precision", "recall"):
        assert scores[name] == pytest.approx(case[name], abs=1e-12)


@pytest.mark.parametrize("case", SPELLINGS, ids=lambda case: case["spelling"])
def test_other_spellings_equal_seqeval(case):
    """What seqeval's default mode makes of tags without a kind, in small letters, or with _."""
    labels, predictions = (
        [conlleval_tags(tags.split(), case["names"]) for tags in case[name]]
        for name in ("labels", "predictions")
    )
    scores = span_scores(labels, predictions)
    for name in ("f1", "precision", "recall"):
        assert scores[name] == pytest.approx(case[name], abs=1e-12)


@pytest.mark.parametrize(
    "right, predicted, f1",
    [
        ("B I O B", "B I I B", 0.5),
        ("B_PER I_PER O", "B_PER O O", 0.0),
        ("b-per i-per O", "b-per O O", 0.0),
        ("B-PER I-PER X", "B-PER O X", 0.0),
    ],
)
def test_spans_are_not_scored_word_by_word(right, predicted, f1):
    rows = [right.split(), predicted.split()]
    labels = sorted({tag for tags in rows for tag in tags})
    scores = span_scores(*([conlleval_tags(tags, labels)] for tags in rows))
    assert scores["f1"] == pytest.approx(f1)


@pytest.mark.parametrize("predicted", [[["O"]], [["O", "O"], ["O"]], [["O"], ["O"]]])
def test_other_lengths(predicted):
    with pytest.raises(ValueError, match="as many predicted tags"):
        span_scores([["O", "O"]], predicted)
    with pytest.raises(ValueError, match="at least one"):
        span_scores([], [])


def test_tags_of_other_forms():
    labels = ["O", "B-PER", "I-PER", "L-PER", "U-LOC", "E-X"]
    tags = ["B-PER", "L-PER", "U-LOC", "O", "E-X", "I-PER"]
    given = conlleval_tags(tags, labels)
    assert given == ["B-PER", "E-PER", "S-LOC", "O", "E-X", "I-PER"]
    assert spans(given)[:2] == [Span("PER", 0, 1), Span("LOC", 2, 2)]
    middle = ["B-PER", "M-PER", "E-PER", "S-LOC"]  # BMES
    assert spans(conlleval_tags(middle, middle)) == [Span("PER", 0, 2), Span("LOC", 3, 3)]
    # Parts of speech: NUM and SYM end alike, INTJ and X look like prefixes. Each word counts.
    words = ["NUM", "SYM", "SYM", "INTJ", "X"]
    spans_of_words = spans(conlleval_tags(words, words))
    assert spans_of_words == [Span(word, i, i) for i, word in enumerate(words)]
    predicted = conlleval_tags(["NUM", "NUM", "SYM", "O", "X"], words)
    assert predicted[3] == "O"
    scores = span_scores([conlleval_tags(words, words)], [predicted])
    assert scores["recall"] == scores["accuracy"] == 0.6 and scores["precision"] == 0.75
