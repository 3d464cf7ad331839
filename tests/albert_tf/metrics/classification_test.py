"""Scores by their definitions."""

from __future__ import annotations

import math

import pytest

from albert_tf.metrics.classification import accuracy, f1, f1_macro, matthews_corrcoef

LABELS = ["a", "a", "a", "b", "b", "c"]
PREDICTED = ["a", "a", "b", "b", "b", "a"]


def test_scores():
    # a: precision 2/3, recall 2/3; b: 2/3, 1; c: 0.
    f1 = (2 / 3 + 4 / 5 + 0) / 3
    # Covariances of the confusion matrix (Gorodkin 2004): 4 of 6 are right.
    numerator = 4 * 6 - (3 * 3 + 2 * 3 + 1 * 0)
    denominator = math.sqrt((36 - (9 + 9 + 0)) * (36 - (9 + 4 + 1)))
    assert accuracy(LABELS, PREDICTED) == pytest.approx(4 / 6)
    assert f1_macro(LABELS, PREDICTED) == pytest.approx(f1)
    assert matthews_corrcoef(LABELS, PREDICTED) == pytest.approx(numerator / denominator)


def test_all_right_and_always_the_same():
    scorers = (accuracy, f1_macro, matthews_corrcoef)
    assert [score(LABELS, LABELS) for score in scorers] == [1.0] * 3
    same = [score(LABELS, ["a"] * 6) for score in scorers]
    assert same == pytest.approx([0.5, (2 / 3) / 3, 0.0])
    assert {type(value) for value in same} == {float}


def test_where_a_class_is_missing_scores_are_0(recwarn):
    assert f1([1, 0], [0, 0]) == f1([0, 0], [0, 0]) == 0.0
    assert matthews_corrcoef([1, 0, 1], [1, 1, 1]) == matthews_corrcoef([1, 1], [1, 1]) == 0.0
    assert not recwarn.list
