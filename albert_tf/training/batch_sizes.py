"""Global batch sizes: one for the whole run, or a schedule from --batch_size_schedule.

64@0,128@5000   64 examples in each of the first 5,000 updates, 128 in all others
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from albert_tf.errors import UserError
from albert_tf.training.settings import MAX_BATCH_SIZE
from data_pipeline.schedules import Schedule
from data_pipeline.settings import Numbers

_FLAG = "batch_size_schedule"


@dataclasses.dataclass(frozen=True)
class BatchSizes(Schedule):
    """The number of examples in a global batch, as a function of the updates made before."""

    values: tuple[int, ...]

    @classmethod
    def of(cls, batch_size: int | str) -> BatchSizes:
        """Sizes from a number, for all updates, or from a string in the format above."""
        if isinstance(batch_size, str):
            return cls.parse(_FLAG, batch_size, Numbers(int, at_least=1, at_most=MAX_BATCH_SIZE))
        return cls((batch_size,))

    @property
    def is_constant(self) -> bool:
        """Whether all batches have one size."""
        return len(self.values) == 1

    @property
    def flag(self) -> str:
        """The flag that sets these sizes, with its value, for messages."""
        return f"--train_batch_size={self.at(0)}" if self.is_constant else f"--{_FLAG}={self}"

    def before(self, step: int) -> int:
        """Number of examples in all batches before a step: with 8@0,16@5, 56 before step 6."""
        ends = [min(end, step) for end in (*self.steps[1:], step)]
        counts = (max(0, end - first) for first, end in zip(self.steps, ends))
        return sum(size * count for size, count in zip(self.values, counts))

    def batches(self, make: Callable[..., Any]) -> Callable[..., Any]:
        """A function of `start_step=` that returns endless batches of the size at that step. It
        calls `make` with this size, the step, and the number of examples before it.
        """

        def batches(start_step: int = 0, **others: Any) -> Any:
            place = {"start_step": start_step, "examples_before": self.before(start_step)}
            return make(self.at(start_step), **place, **others)

        return batches

    def check(self, num_replicas: int, num_micro_batches: int) -> None:
        """Raises UserError if a size cannot be divided equally into micro-batches or, if sizes
        change, over replicas.
        """
        if min(self.values) < 1:
            raise UserError(f"{self.flag} is not a positive number.")
        parts = num_replicas * num_micro_batches
        for size in self.values:
            if size % parts and (num_micro_batches > 1 or not self.is_constant):
                given = self.flag if self.is_constant else f"{self.flag}: {size}"
                raise UserError(
                    f"{given} is not divisible by {num_replicas} replica(s) times "
                    f"--gradient_accumulation_steps={num_micro_batches}. Use multiples of {parts}."
                )
