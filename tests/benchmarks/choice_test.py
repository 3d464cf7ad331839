"""The parts of a benchmark that a flag's pattern chooses."""

from __future__ import annotations

import pytest
from absl import flags
from absl.testing import flagsaver

from benchmarks.choice import chosen
from data_pipeline.errors import UserError

flags.DEFINE_string("choice_test_pattern", "", "What to choose.")
PARTS = {"8x128": 1, "32x128": 2, "4x512": 3}


@pytest.mark.parametrize("pattern, expected", [("", [1, 2, 3]), ("x128", [1, 2]), ("^8x", [1])])
def test_names_that_match_are_chosen_in_their_order(pattern, expected):
    with flagsaver.as_parsed(choice_test_pattern=pattern):
        assert list(chosen("choice_test_pattern", PARTS).values()) == expected


@pytest.mark.parametrize(
    "pattern, message",
    [
        ("16x", "--choice_test_pattern=16x matches none of: 8x128; 32x128; 4x512."),
        ("(8x", r"--choice_test_pattern=\(8x is no regular expression: .*"),
    ],
)
def test_a_pattern_that_chooses_nothing_is_an_error(pattern, message):
    with (
        flagsaver.as_parsed(choice_test_pattern=pattern),
        pytest.raises(UserError, match=message),
    ):
        chosen("choice_test_pattern", PARTS)
