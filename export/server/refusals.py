"""Refusals of requests: the error that HTTP and gRPC share, and the limits of a request.

Limits are checked before anything is expanded or computed: a message of 33 bytes may claim a
tensor of gigabytes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import numpy as np

INVALID_ARGUMENT, NOT_FOUND = "INVALID_ARGUMENT", "NOT_FOUND"
RESOURCE_EXHAUSTED, INTERNAL = "RESOURCE_EXHAUSTED", "INTERNAL"

_LONGEST_LIST = 400  # Characters: names of clients may be as long as a request.


class ServingError(Exception):
    """A request that cannot be answered.

    Attributes:
      code: name of a gRPC status code, one of the constants above.
      message: one sentence.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def invalid(message: str) -> ServingError:
    """A refusal because of the request itself."""
    return ServingError(INVALID_ARGUMENT, message)


def listed(names: Iterable[str]) -> str:
    """Names in order, as in a sentence; of very many or very long ones the beginning."""
    text = ", ".join(sorted(names))
    return text if len(text) <= _LONGEST_LIST else f"{text[:_LONGEST_LIST]}..."


@dataclasses.dataclass(frozen=True)
class Limits:
    """The largest request that is answered.

    Attributes:
      max_request_bytes: bytes of a request's body or message.
      max_batch_size: rows (texts, examples, instances) of a request.
      max_text_bytes: bytes of one string, in UTF-8.
      max_row_values: values in one row of an input, such as the ids of a sequence.
      max_input_values: values in all rows of an input.
      max_answer_values: values in all outputs together.
    """

    max_request_bytes: int = 8 << 20
    max_batch_size: int = 128
    max_text_bytes: int = 1 << 17
    max_row_values: int = 4096
    max_input_values: int = 1 << 16
    max_answer_values: int = 1 << 21

    def check_rows(self, count: int) -> None:
        """Raises ServingError for more rows than allowed."""
        if count > self.max_batch_size:
            raise _too_large(f"The request has {count} rows", self.max_batch_size, "max_batch_size")

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raises ServingError for a shape `[rows, ...]` that is impossible or too large."""
        if min(shape, default=0) < 0:
            raise invalid(f"Input {name!r} has a negative dimension: {list(shape)!s:.80}.")
        self.check_rows(shape[0] if shape else 1)
        values = math.prod(shape[1:])  # Python's integers, which do not overflow.
        if values > self.max_row_values:
            told = f"Input {name!r} has {values} values in a row"
            raise _too_large(told, self.max_row_values, "max_row_values")
        if math.prod(shape) > self.max_input_values:
            told = f"Input {name!r} has {math.prod(shape)} values"
            raise _too_large(told, self.max_input_values, "max_input_values")

    def check_strings(self, name: str, array: np.ndarray) -> None:
        """Raises ServingError when strings of an array of objects are too long.

        All together count as well: one string of a message may be repeated for every element.
        """
        sizes = [len(value) for value in array.flat if isinstance(value, bytes)]
        longest = max(sizes, default=0)
        if longest > self.max_text_bytes:
            told = f"Input {name!r} holds a text of {longest} bytes"
            raise _too_large(told, self.max_text_bytes, "max_text_bytes")
        if sum(sizes) > self.max_request_bytes:
            told = f"The texts of input {name!r} have {sum(sizes)} bytes"
            raise _too_large(told, self.max_request_bytes, "max_request_bytes")

    def bounded_examples(self, examples: Iterable[bytes]) -> list[bytes]:
        """Serialized examples, made one by one as long as all fit into the size of a request.

        The features that examples share (their context) are in the request once, but in each
        example that is made of it.

        Raises:
          ServingError: they are larger.
        """
        made: list[bytes] = []
        left = self.max_request_bytes
        for example in examples:
            left -= len(example)
            if left < 0:
                told = "The examples with their context are larger"
                raise _too_large(told, self.max_request_bytes, "max_request_bytes")
            made.append(example)
        return made

    def check_answer(self, count: int) -> None:
        """Raises ServingError for more values than allowed, each of which JSON makes larger."""
        if count > self.max_answer_values:
            told = f"The answer has {count} values"
            raise _too_large(told, self.max_answer_values, "max_answer_values")


def _too_large(told: str, most: int, flag: str) -> ServingError:
    return invalid(f"{told}; this server allows up to {most} (--{flag}). Send less at once.")
