"""The parts of a benchmark that a flag asks for."""

from __future__ import annotations

import re
from typing import TypeVar

from data_pipeline.errors import UserError

T = TypeVar("T")


def chosen(flag: str, pattern: str, named: dict[str, T]) -> dict[str, T]:
    """The parts whose names match a flag's pattern, in their order.

    Args:
      flag: its name, for messages, for instance "cases".
      pattern: its value.
      named: the parts by name.

    Raises:
      UserError: none does, or the pattern is no regular expression.
    """
    try:
        found = {name: part for name, part in named.items() if re.search(pattern, name)}
    except re.error as error:
        raise UserError(f"--{flag}={pattern} is no regular expression: {error}.") from None
    if not found:
        raise UserError(f"--{flag}={pattern} matches none of: {'; '.join(named)}.")
    return found
