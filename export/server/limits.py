"""The largest request, checked before anything is expanded or computed; the largest answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from export.server.errors import invalid


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
            raise invalid(
                f"The request has {count} rows; this server takes up to {self.max_batch_size} at "
                "once (--max_batch_size). Send several requests."
            )

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raises ServingError for a shape `[rows, ...]` that is too large in any way."""
        if not shape:
            return
        self.check_rows(shape[0])
        values = 1
        for size in shape[1:]:
            values *= size
        if values > self.max_row_values:
            raise invalid(
                f"Input {name!r} has {values} values in a row; this server takes up to "
                f"{self.max_row_values} (--max_row_values)."
            )
        if shape[0] * values > self.max_input_values:
            raise invalid(
                f"Input {name!r} has {shape[0] * values} values; this server takes up to "
                f"{self.max_input_values} (--max_input_values). Send several requests."
            )

    def check_strings(self, name: str, array: np.ndarray) -> None:
        """Raises ServingError when a string of an array of objects is too long."""
        longest = max(
            (len(value) for value in array.flat if isinstance(value, bytes)),
            default=0,
        )
        if longest > self.max_text_bytes:
            raise invalid(
                f"Input {name!r} holds a text of {longest} bytes; this server takes up to "
                f"{self.max_text_bytes} (--max_text_bytes)."
            )

    def bounded_examples(self, examples: Iterable[bytes]) -> list[bytes]:
        """Serialized examples, made one by one as long as they are no larger together than a
        request may be: what they share stands in the request once, and in each of them.

        Raises:
          ServingError: they are larger.
        """
        made: list[bytes] = []
        left = self.max_request_bytes
        for example in examples:
            left -= len(example)
            if left < 0:
                raise invalid(
                    "The examples and what they share make more than "
                    f"{self.max_request_bytes} bytes (--max_request_bytes). Send several requests."
                )
            made.append(example)
        return made

    def check_answer(self, count: int) -> None:
        """Raises ServingError for more values than allowed, each of which JSON makes larger."""
        if count > self.max_answer_values:
            raise invalid(
                f"The answer has {count} values; this server gives up to {self.max_answer_values} "
                "at once (--max_answer_values). Send several requests."
            )
