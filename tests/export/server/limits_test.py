"""The largest request: it passes, a larger one is refused with the flag's name."""

import numpy as np
import pytest

from export.server.errors import ServingError
from export.server.limits import Limits

LIMITS = Limits(max_batch_size=3, max_text_bytes=4, max_row_values=6, max_answer_values=9)


@pytest.mark.parametrize(
    ("shape", "flag"),
    [
        ((), None),
        ((3,), None),
        ((3, 2, 3), None),
        ((4,), "--max_batch_size"),
        ((1, 7), "--max_row_values"),
        ((0, 2**40, 2**40), "--max_row_values"),
    ],
)
def test_shapes(shape, flag):
    if flag is None:
        LIMITS.check_shape("x", shape)
    else:
        with pytest.raises(ServingError, match=flag):
            LIMITS.check_shape("x", shape)


def test_texts():
    LIMITS.check_strings("x", np.array([[b"abcd"], [b""]], object))
    with pytest.raises(ServingError, match="a text of 5 bytes; .* up to 4 .--max_text_bytes"):
        LIMITS.check_strings("x", np.array([b"a", b"abcde"], object))


def test_answers():
    LIMITS.check_answer(9)
    with pytest.raises(
        ServingError, match="answer has 10 values; .* up to 9 .*--max_answer_values"
    ):
        LIMITS.check_answer(10)
