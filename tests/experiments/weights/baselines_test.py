"""Answers without a network, on made-up examples whose words decide."""

import numpy as np
import pytest

from data_pipeline.finetuning.examples import Split, TextExample
from experiments.weights.baselines import BAGS, OVERLAPS, bag, majority, overlap
from experiments.weights.tasks import WEIGHTS_TASKS


def split(name, texts, labels):
    """A split of pairs, or of single texts where the second one is None."""
    rows = [
        TextExample(str(row), *text, label, name, row + 1)
        for row, (text, label) in enumerate(zip(texts, labels))
    ]
    return Split(name, rows)


@pytest.mark.parametrize("parts", BAGS)
def test_words_decide(parts):
    good, bad = ("a good film", None), ("a bad film", None)
    train = split("train", [good, bad, good] * 10, ["1", "0", "1"] * 10)
    dev = split("dev", [bad, good], ["0", "1"])
    task = WEIGHTS_TASKS["sst-2"]
    assert bag(task, train, dev, parts).tolist() == [0, 1]
    assert majority(task, train, dev).tolist() == [1, 1]


@pytest.mark.parametrize("parts", BAGS)
def test_numbers(parts):
    same, other = ("a red cat", "a red cat"), ("a red cat", "one blue dog")
    train = split("train", [same, other] * 10, [5.0, 0.0] * 10)
    dev = split("dev", [other, same], [0.0, 5.0])
    task = WEIGHTS_TASKS["sts-b"]
    low, high = bag(task, train, dev, parts)
    assert low < 1 < 4 < high
    assert majority(task, train, dev).tolist() == [2.5, 2.5]
    for counted in OVERLAPS:
        np.testing.assert_allclose(overlap(dev, counted), [0, 1], atol=1e-12)
