"""Problems met while a corpus is read: counted, and the first ones named."""

from __future__ import annotations

import collections
import dataclasses

MAX_EXAMPLES = 20


@dataclasses.dataclass
class ReadReport:
    """The problems met while a corpus is read."""

    # Number of lines or files by kind of problem; "file:line: problem" of the first ones.
    problems: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    examples: list[str] = dataclasses.field(default_factory=list)

    def add(self, problem: str, where: str) -> None:
        """Counts one problem at "file" or "file:line"."""
        self.problems[problem] += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(f"{where}: {problem}")
