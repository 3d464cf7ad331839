"""The refusal of a request, in words that HTTP and gRPC share."""

from __future__ import annotations

from collections.abc import Iterable

INVALID_ARGUMENT, NOT_FOUND = "INVALID_ARGUMENT", "NOT_FOUND"
RESOURCE_EXHAUSTED, INTERNAL = "RESOURCE_EXHAUSTED", "INTERNAL"

# Name of a gRPC status code -> status of HTTP, as TF Serving maps them.
HTTP_STATUS = {INVALID_ARGUMENT: 400, NOT_FOUND: 404, RESOURCE_EXHAUSTED: 429, INTERNAL: 500}

_LONGEST_LIST = 400  # Characters: names of clients may be as long as a request.


class ServingError(Exception):
    """A request that cannot be answered.

    Attributes:
      code: name of a gRPC status code, a key of HTTP_STATUS.
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
