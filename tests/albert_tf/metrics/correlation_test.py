"""Where correlations are undefined; scorers_test.py holds their values to a golden."""

from __future__ import annotations

import math

import pytest

from albert_tf.metrics.correlation import mean_squared_error, pearson, spearman

LABELS = [0.0, 1.0, 2.5, 4.0, 5.0]
PREDICTIONS = [0.2, 0.1, 2.0, 2.0, 4.4]


@pytest.mark.parametrize("constant", [LABELS, [2.5] * 5])
def test_constant_values_are_undefined_and_silent(constant, recwarn):
    other = [1.0] * 5
    for function in (pearson, spearman):
        assert function(constant, other) is None
        assert function(other, constant) is None
    assert mean_squared_error(other, [2.5] * 5) == 2.25
    assert not recwarn.list


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers(value, recwarn):
    predictions = [*PREDICTIONS[:-1], value]
    for function in (pearson, spearman, mean_squared_error):
        assert function(LABELS, predictions) is None
    assert not recwarn.list


def test_values_that_overflow():
    """So far apart that a correlation is nan."""
    assert pearson([1e300, -1e300, 0], [1e300, 1e300, -1e300]) in (None, pytest.approx(0, abs=1))
