"""Which of a benchmark's parts a flag asks for."""

from __future__ import annotations

import re
from typing import TypeVar

from absl.flags import FLAGS

from data_pipeline.errors import UserError

T = TypeVar("T")


def chosen(flag: str, named: dict[str, T]) -> dict[str, T]:
    """Those whose names match the pattern that a flag holds, in their order.

    Args:
      flag: its name, for instance "cases".
      named: what there is, by name.

    Raises:
      UserError: none does, or the pattern is no regular expression.
    """
    pattern = FLAGS[flag].value
    try:
        found = {name: part for name, part in named.items() if re.search(pattern, name)}
    except re.error as error:
        raise UserError(f"--{flag}={pattern} is no regular expression: {error}.") from None
    if not found:
        raise UserError(f"--{flag}={pattern} matches none of: {'; '.join(named)}.")
    return found
