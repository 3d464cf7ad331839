"""Problems found while reading a corpus: a count of each kind, and the first ones as examples."""

from __future__ import annotations

import collections
import dataclasses

MAX_EXAMPLES = 20


@dataclasses.dataclass
class ReadReport:
    """The problems found while reading a corpus."""

    # The number of lines or files with each problem, and "file:line: problem" for the first ones.
    problems: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    examples: list[str] = dataclasses.field(default_factory=list)

    def add(self, problem: str, where: str) -> None:
        """Counts one problem at "file" or "file:line"."""
        self.problems[problem] += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(f"{where}: {problem}")
