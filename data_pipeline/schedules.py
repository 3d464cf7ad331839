"""Settings that change during a run, at steps given in advance.

--mask_schedule=0.3@0,0.15@20000   0.3 for the first 20,000 updates, 0.15 for all others
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from typing import Any, TypeVar

from data_pipeline.errors import UserError
from data_pipeline.settings import Numbers

S = TypeVar("S", bound="Schedule")


@dataclasses.dataclass(frozen=True)
class Schedule:
    """A number as a function of the step, that is, of the number of previous updates.

    Attributes:
      values: the numbers, in order.
      steps: the step from which each number applies; they start at 0 and increase.
    """

    values: tuple[float, ...]
    steps: tuple[int, ...] = (0,)

    @classmethod
    def parse(cls: type[S], name: str, text: str, numbers: Numbers) -> S:
        """Parses the schedule of a setting, a string as in the module's example. Another format, or
        a value that `numbers` do not allow, is a UserError.
        """
        pairs = [part.split("@") for part in text.split(",")]
        try:
            found = cls(
                tuple(numbers.parse(value) for value, _ in pairs),
                tuple(int(Numbers(int).parse(step)) for _, step in pairs),
            )
        except ValueError:  # Also raised for a part without a step.
            found = cls((), ())
        has_order = all(step < later for step, later in itertools.pairwise(found.steps))
        if found.steps[:1] != (0,) or not has_order:
            raise UserError(
                f"--{name}={text}: expected VALUE@STEP, or several separated by commas, the first "
                f"with step 0, and with rising steps; each value {numbers.allowed()}."
            )
        return found

    def __str__(self) -> str:
        return ",".join(f"{value}@{step}" for value, step in zip(self.values, self.steps))

    def at(self, step: int) -> Any:
        """The value at a step: 8@0,16@5 has the value 8 at step 4, and 16 at step 5."""
        return self.values[bisect.bisect_right(self.steps, step) - 1]
