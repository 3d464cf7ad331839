"""Refusals of requests: the error that REST and gRPC share, and the limits of a request."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Literal

import numpy as np

from data_pipeline.settings import Settings, setting

# Names of gRPC status codes, which REST translates to HTTP statuses.
Code = Literal["INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED", "INTERNAL"]

MAX_DIMENSIONS = 8  # With many more, NumPy and TensorFlow fail, each with its own error.
_LONGEST_LIST = 400  # Characters: names in a request may be arbitrarily long.


class ServingError(Exception):
    """A request that cannot be answered; the message is one sentence."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def invalid(message: str) -> ServingError:
    """The error for an invalid request."""
    return ServingError("INVALID_ARGUMENT", message)


def listed(names: Iterable[str]) -> str:
    """Sorted names, joined for a sentence; a long list is truncated."""
    text = ", ".join(sorted(names))
    return text if len(text) <= _LONGEST_LIST else f"{text[:_LONGEST_LIST]}..."


@dataclasses.dataclass(frozen=True)
class Limits(Settings):
    """The limits of a request; each check raises ServingError if one is exceeded.

    Shapes are checked before anything is expanded or computed: a message of 33 bytes may claim a
    tensor of gigabytes.
    """

    max_request_bytes: int = setting(
        8 << 20, "Largest body of a request (REST) or message (gRPC), in bytes.", at_least=1
    )
    max_batch_size: int = setting(
        128, "Maximum rows in a request: texts, examples or instances.", at_least=1, expert=True
    )
    max_text_bytes: int = setting(
        1 << 17, "Longest text of a request, in bytes of UTF-8.", at_least=1, expert=True
    )
    max_row_values: int = setting(
        4096,
        "Maximum values in one row of an input, such as the ids of a sequence.",
        at_least=1,
        expert=True,
    )
    max_input_values: int = setting(
        1 << 16, "Maximum values in all rows of an input together.", at_least=1, expert=True
    )
    max_answer_values: int = setting(
        1 << 21, "Maximum values in all outputs of an answer together.", at_least=1, expert=True
    )

    def check_rows(self, count: int) -> None:
        """Checks the number of rows of a request."""
        self._check("max_batch_size", count, f"The request has {count} rows")

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Checks the shape [rows, ...] that a request claims."""
        # First, since the product of many sizes can be too long for Python to print.
        if len(shape) > MAX_DIMENSIONS:
            problem = f"{len(shape)} dimensions; the maximum is {MAX_DIMENSIONS}"
            raise invalid(f"Input {name!r} has {problem}.")
        if min(shape, default=0) < 0:
            raise invalid(f"Input {name!r} has a negative dimension: {list(shape)}.")
        # Python's integers do not overflow, unlike sizes in NumPy and TensorFlow.
        row, values = math.prod(shape[1:]), math.prod(shape)
        self.check_rows(shape[0] if shape else 1)
        self._check("max_row_values", row, f"Input {name!r} has {row} values in a row")
        self._check("max_input_values", values, f"Input {name!r} has {values} values")

    def check_strings(self, name: str, array: np.ndarray) -> None:
        """Checks the texts of an object array: the longest one, and their total."""
        sizes = [len(value) for value in array.flat if isinstance(value, bytes)]
        longest, total = max(sizes, default=0), sum(sizes)
        self._check("max_text_bytes", longest, f"Input {name!r} holds a text of {longest} bytes")
        # In a gRPC message, one text may stand for all elements, so their total can be far larger
        # than the message.
        self._check("max_request_bytes", total, f"The texts of input {name!r} have {total} bytes")

    def bounded_examples(self, examples: Iterable[bytes]) -> list[bytes]:
        """The serialized examples as a list, if their total fits into the size of a request."""
        # The shared features (the context) are in the request once, but are copied to every
        # example. So examples are created one by one, up to the limit.
        made, size = [], 0
        for example in examples:
            size += len(example)
            problem = "The examples with their context are larger"
            self._check("max_request_bytes", size, problem)
            made.append(example)
        return made

    def check_answer(self, count: int) -> None:
        """Checks the number of values of an answer, since JSON makes each value larger."""
        self._check("max_answer_values", count, f"The answer has {count} values")

    def _check(self, limit: str, count: int, problem: str) -> None:
        most = getattr(self, limit)
        if count > most:
            raise invalid(
                f"{problem}; this server allows up to {most} (--{limit}). Send less at once."
            )
