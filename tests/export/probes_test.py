"""The comparison that an export has to pass."""

import numpy as np
import pytest

from export.probes import Probe, largest_difference

PROBE = Probe("s", {}, {"x": np.array([1.0, 100.0], np.float32), "n": np.array([1, 2])})


def answer(x, n=(1, 2)):
    return {"x": np.array(x, np.float32), "n": np.array(n)}


def test_reports_the_largest_difference():
    assert largest_difference(PROBE, answer([1.0, 100.0]), 1e-5) == 0
    assert largest_difference(PROBE, answer([1.0, 100.0005]), 1e-5) == pytest.approx(5e-4, rel=0.1)


@pytest.mark.parametrize(
    "wrong",
    [answer([1.0, 100.1]), answer([1.0, np.nan]), answer([1.0]), answer([1.0, 100.0], (1, 3))],
)
def test_refuses_what_differs(wrong):
    with pytest.raises(ValueError, match="signature 's', output"):
        largest_difference(PROBE, wrong, 1e-5)
