"""The parts of a benchmark that a flag's pattern chooses."""

from __future__ import annotations

import pytest

from benchmarks.choice import chosen
from data_pipeline.errors import UserError

PARTS = {"8x128": 1, "32x128": 2, "4x512": 3}


@pytest.mark.parametrize("pattern, expected", [("", [1, 2, 3]), ("x128", [1, 2]), ("^8x", [1])])
def test_names_that_match_are_chosen_in_their_order(pattern, expected):
    assert list(chosen("cases", pattern, PARTS).values()) == expected


@pytest.mark.parametrize(
    "pattern, message",
    [
        ("16x", "--cases=16x matches none of: 8x128; 32x128; 4x512."),
        ("(8x", r"--cases=\(8x is no regular expression: .*"),
    ],
)
def test_a_pattern_that_chooses_nothing_is_an_error(pattern, message):
    with pytest.raises(UserError, match=message):
        chosen("cases", pattern, PARTS)
